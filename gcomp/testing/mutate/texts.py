"""Mutations of IR text: tokens, lines, literals, types, dimensions, and texts made to exhaust a parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

from gcomp.testing.mutate.harness import Case

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[%@#!^][\w$.\-:]*|0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?'
    r"|x(?=[\d?])|x(?=[a-z])|[A-Za-z_][\w$.]*|->|\s+|.",
    re.DOTALL,
)
_ELEMENTS = (
    "f64", "f32", "f16", "bf16", "f8E4M3FN", "f4E2M1FN", "i1", "i4", "i8", "i64", "ui2", "ui64", "i3", "i999999",
    "complex<f32>", "index", "none", "tuple<f32>", "!quant.uniform<i8:f32, 1.0>", "f128", "vector<4xf32>",
    "memref<4xf32>", "tensor<4xf32>", "!stablehlo.token", "*xf32",
)  # fmt: skip
_NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "64", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551616", "99999999999999999999999", "0x0", "0xFF", "0x7FC00000",
    "0xFFFFFFFFFFFFFFFFFF", "1e400", "1.0e-400", "1.5", "-0.0", "nan", "inf", "true", "?",
)  # fmt: skip
_SIZES = (
    "batch", "2*batch", "batch + 1", "batch floordiv 0", "batch mod 0", "-batch", "batch*batch*batch*batch",
    "min(batch, 0)", "max(a, b, c, d, e)", "1", "0", "-1", "_", "", " ", "batch ", "0x10", "2**64", "bätch",
    "9223372036854775808*batch", "((((batch))))", "batch floordiv (batch floordiv (batch floordiv 2))",
    "a*b*c*d*e*f*g*h", " + ".join(f"s{i}" for i in range(400)), "(" * 2000 + "b" + ")" * 2000,
)  # fmt: skip
_WORDS = (
    "stablehlo.add", "stablehlo.constant", "stablehlo.reduce", "stablehlo.while", "stablehlo.custom_call", "chlo.erf",
    "gcomp.weight", "gcomp.dim", "func.func", "func.call", "return", "builtin.module", "module", "private", "dense",
    "dense_resource<x>", "array<i64: 1, 2>", "affine_map<(d0) -> (d0)>", 'loc("a":1:2)', "loc(unknown)", "unit",
    'opaque<"x", "0xFF">', "#stablehlo<precision HIGHEST>", "#stablehlo<comparison_direction XX>", "^bb0",
    "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "{-# dialect_resources: {} #-}", "^bb0(%z: f32):",
    "sparse<[0], 1.0>", "strided<[1]>", "@main", "%0#1", "%0:2", "->", "<{", "}>", "({", "})", "::", "=", ",", "-",
    "!a = i32", "#a = 1 : i32", '"stablehlo.add"', "attributes {a = b}", "{gcomp.name = 1}", '"\\ZZ"',
)  # fmt: skip
_CHARACTERS = (
    "\x00", "\ud800", "\udfff\ud800", "\ufeff", "\u2028", "\x85", "é", "\U0001f600", "\\", '"', "'", "`", "\x1b", "\r",
)  # fmt: skip
_BOMBS = (
    "dense<1.0> : tensor<1000000000000xf32>", "dense<> : tensor<1000000000000xf32>", "dense<[]> : tensor<0x99999xf32>",
    'dense<"0x00000000"> : tensor<1000000000000xf32>', 'dense<"0xABC"> : tensor<4xf32>', 'dense<"0x"> : tensor<4xi8>',
    "dense<true> : tensor<9223372036854775807x9223372036854775807xi1>", "dense<[1.0, [2.0]]> : tensor<2xf32>",
    "dense<(1.0,2.0)> : tensor<99999999x99999999xcomplex<f32>>", "dense<0xFFFFFFFFFF> : tensor<4xf32>",
    "dense<300> : tensor<4xi8>", "dense<1.0> : tensor<?xf32>", "dense<1.0> : f32", "dense<1> : tensor<4xindex>",
    "dense<nan> : tensor<4xf32>",
)  # fmt: skip
"""Constants whose types claim more than their data holds."""

Tokens = list[str]
Mutator = Callable[[Random, Tokens], None]


def mutate(chance: Random, text: str) -> tuple[str, str]:
    """A mutated text, and the names of the mutators that made it."""
    tokens, names = _TOKEN.findall(text), list[str]()
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        mutator = chance.choice(MUTATORS)
        mutator(chance, tokens)
        names.append(mutator.__name__)
    return "".join(tokens), names[0] if len(names) == 1 else "several"


def cases(samples: Sequence[str], count: int, seed: int = 0) -> Iterator[Case[str]]:
    """`count` mutated texts: each sample in turn, each from a seed of its own."""
    for i in range(count):
        text, mutator = mutate(Random(f"text {seed} {i}"), samples[i % len(samples)])
        yield Case(f"text {seed} {i}", mutator, text)


def _span(chance: Random, tokens: Tokens, most: int = 6) -> slice:
    start = chance.randrange(len(tokens) + 1)
    return slice(start, start + chance.randint(1, most))


def _choose(chance: Random, tokens: Tokens, wanted: Callable[[str], object]) -> int | None:
    """The place of some token that is wanted."""
    places = [i for i, token in enumerate(tokens) if wanted(token)]
    return chance.choice(places) if places else None


def _replace(chance: Random, tokens: Tokens, wanted: Callable[[str], object], choices: Sequence[str]) -> None:
    if (place := _choose(chance, tokens, wanted)) is not None:
        tokens[place] = chance.choice(choices)


def _is_number(token: str) -> bool:
    return token[:1].isdigit() or token == "?"


def delete_tokens(chance: Random, tokens: Tokens) -> None:
    """Leave some tokens out."""
    del tokens[_span(chance, tokens)]


def duplicate_tokens(chance: Random, tokens: Tokens) -> None:
    """Say some tokens twice."""
    span = _span(chance, tokens)
    tokens[span.start : span.start] = tokens[span]


def swap_tokens(chance: Random, tokens: Tokens) -> None:
    """Exchange two tokens."""
    if tokens:
        a, b = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        tokens[a], tokens[b] = tokens[b], tokens[a]


def replace_token(chance: Random, tokens: Tokens) -> None:
    """Put another of the text's own tokens in the place of one."""
    if words := [t for t in tokens if not t.isspace()]:
        _replace(chance, tokens, str.strip, words)


def insert_word(chance: Random, tokens: Tokens) -> None:
    """Insert a word of the language where it may not belong."""
    tokens.insert(chance.randrange(len(tokens) + 1), f" {chance.choice(_WORDS)} ")


def change_number(chance: Random, tokens: Tokens) -> None:
    """Make a number extreme, or something else."""
    _replace(chance, tokens, _is_number, _NUMBERS)


def nudge_number(chance: Random, tokens: Tokens) -> None:
    """Make a number another small one: the text still parses, and means something else."""
    _replace(chance, tokens, _is_number, ("0", "1", "2", "3", "4", "5"))


def change_element_type(chance: Random, tokens: Tokens) -> None:
    """Give one type, or every use of it, another element type."""
    old = _choose(chance, tokens, re.compile(r"(x|)(f|i|ui|bf)\d+$").match)
    if old is None:
        return
    new, everywhere = chance.choice(_ELEMENTS), chance.random() < 0.5
    tokens[:] = [new if t == tokens[old] and (everywhere or i == old) else t for i, t in enumerate(tokens)]


def change_dimension(chance: Random, tokens: Tokens) -> None:
    """Give one size another value wherever it is used, so that types still agree."""
    if (place := _choose(chance, tokens, str.isdigit)) is not None:
        old, new = (
            tokens[place],
            chance.choice(("0", "1", "1000000000000", "9223372036854775807", "99999999999999999999", "?")),
        )
        tokens[:] = [new if token == old else token for token in tokens]


def change_name(chance: Random, tokens: Tokens) -> None:
    """Use another value, symbol, block or attribute name."""
    names = [t for t in tokens if t[:1] in tuple("%@#^!")]
    _replace(
        chance,
        tokens,
        lambda t: t[:1] in tuple("%@#^!"),
        [*names, "%undefined", "@undefined", "^bb9", "%0#99", "@", "%", '@"\\00"'],
    )


def change_value(chance: Random, tokens: Tokens) -> None:
    """Use another value, or rename one: orders, types and scopes may no longer agree."""
    values = [t for t in tokens if t[:1] == "%"]
    _replace(chance, tokens, lambda t: t[:1] == "%", values)


def change_string(chance: Random, tokens: Tokens) -> None:
    """Change a string: a dimension, a name, or not a string any more."""
    _replace(
        chance,
        tokens,
        lambda t: t[:1] == '"',
        [*(f'"{size}"' for size in _SIZES), '"', '"\\', '"\n"', "''", '"\\FF\\FE"'],
    )


def change_size(chance: Random, tokens: Tokens) -> None:
    """Give a tensor type an encoding, or its own another one."""
    size = chance.choice(_SIZES)
    if (place := _choose(chance, tokens, lambda t: t == "tensor")) is not None:
        tokens[place] = chance.choice(
            (f'tensor<?xf32, ["{size}"]> tensor', f'tensor<?xf32, ["{size}"]>', f'tensor<?x4xf32, ["{size}"]>')
        )


def rename_op(chance: Random, tokens: Tokens) -> None:
    """Make an op another op of the text, or one that does not exist."""

    def is_op(token: str) -> bool:
        return "." in token and token.strip('"')[:1].isalpha()

    _replace(
        chance, tokens, is_op, [*filter(is_op, tokens), "stablehlo.none", "unknown.op", '"unknown.op"', "func.return"]
    )


def delete_lines(chance: Random, tokens: Tokens) -> None:
    """Leave some lines out."""
    lines = "".join(tokens).splitlines(keepends=True)
    del lines[_span(chance, lines, 2)]
    tokens[:] = _TOKEN.findall("".join(lines))


def move_line(chance: Random, tokens: Tokens) -> None:
    """Move or copy a line to another place."""
    lines = "".join(tokens).splitlines(keepends=True)
    if lines:
        place = chance.randrange(len(lines))
        line = lines.pop(place) if chance.random() < 0.5 else lines[place]
        lines.insert(chance.randrange(len(lines) + 1), line)
    tokens[:] = _TOKEN.findall("".join(lines))


def truncate(chance: Random, tokens: Tokens) -> None:
    """Stop anywhere, within a token too."""
    text = "".join(tokens)
    tokens[:] = [text[: chance.randrange(len(text) + 1)]]


def repeat_text(chance: Random, tokens: Tokens) -> None:
    """Say everything twice, or inside a module."""
    text = "".join(tokens)
    tokens[:] = [
        chance.choice((text + text, f"module {{\n{text}}}\n", f"builtin.module @x {{ {text} module {{ {text} }} }}"))
    ]


def nest(chance: Random, tokens: Tokens) -> None:
    """Nest brackets deep, closed or not, or regions inside regions."""
    depth, (left, right) = chance.choice((3, 40, 120, 130, 2000, 100_000)), chance.choice(("[]", "()", "{}", "<>"))
    ops = min(depth, 2000)
    nested = (
        left * depth, left * depth + right * depth, "tensor<" * depth, "tuple<" * depth + ">" * depth,
        "module {" * depth, "loc(fused[" * depth,
        '"stablehlo.if"(%x) ({ ' * ops + "}, {}) : () -> () " * ops,
    )  # fmt: skip
    tokens.insert(chance.randrange(len(tokens) + 1), chance.choice(nested))


def lengthen(chance: Random, tokens: Tokens) -> None:
    """Make a number, name, string or list very long."""
    digits = chance.choice((30, 399, 5_000))
    long = (
        "1" * digits, "-" + "9" * digits, "0." + "3" * digits, "1e" + "9" * digits, "0x" + "F" * digits,
        "%" + "a" * 50_000, '"' + "a" * 50_000 + '"', "[" + "1, " * 5_000 + "1]", "/" * 50_000, "-" * 50_000,
        '"' + "\\22" * 20_000 + '"', " " * 100_000, "x" * 20_000,
    )  # fmt: skip
    if (place := _choose(chance, tokens, _is_number)) is not None and chance.random() < 0.6:
        tokens[place] = chance.choice(long)
    else:
        tokens.insert(chance.randrange(len(tokens) + 1), chance.choice(long))


def odd_character(chance: Random, tokens: Tokens) -> None:
    """Insert a character that text should not hold, anywhere."""
    text, character = "".join(tokens), chance.choice(_CHARACTERS)
    place = chance.randrange(len(text) + 1)
    tokens[:] = [text[:place], character, text[place:]]


def bomb(chance: Random, tokens: Tokens) -> None:
    """Add a constant whose type claims more than its data has: reading it must stay cheap."""
    literal = chance.choice(_BOMBS)
    type = literal.partition(" : ")[2]
    lines = [f"func.func private @bomb{chance.randrange(10**6)}() -> {type} {{",
             f"  %b = stablehlo.constant {literal}", f"  func.return %b : {type}", "}"]  # fmt: skip
    tokens.append("\n".join(["", *lines, ""]))


def module_attributes(chance: Random, tokens: Tokens) -> None:
    """Put the text into a module whose own attributes are wrong."""
    size, number = chance.choice(_SIZES[:-2]), chance.choice(_NUMBERS)
    ranges = (
        f'{{batch = "{size}"}}', f"{{batch = {number}}}", f'{{batch = "{number}..{number}"}}', '{"1" = "1..2"}',
        "[]", f'{{batch = "1..8 step {number}"}}', "{batch}", '{batch = "8..1"}',
    )  # fmt: skip
    constraints = (
        '["{}"]', "[1]", '["[[[["]', f'["{{\\22lhs\\22: \\22{size}\\22}}"]', "{}", '["' + "[" * 3000 + '"]',
    )  # fmt: skip
    pair = f"gcomp.ranges = {chance.choice(ranges)}", f"gcomp.constraints = {chance.choice(constraints)}"
    chosen = ", ".join(chance.sample(pair, chance.randint(1, 2)))
    tokens[:] = [f"module attributes {{{chosen}}} {{\n", *tokens, "}\n"]


def argument_attributes(chance: Random, tokens: Tokens) -> None:
    """Give an argument or result attributes that gcomp reads, of the wrong kind."""
    if (place := _choose(chance, tokens, lambda t: t == ")")) is not None:
        name = chance.choice(('"x"', "1", '""', '"\\FF"', "[]", '"' + "n" * 10_000 + '"'))
        tokens.insert(
            place, chance.choice((f" {{gcomp.name = {name}}}", " {gcomp.donated = 1}", " {gcomp.name}", " {a, a}"))
        )


MUTATORS: tuple[Mutator, ...] = (
    delete_tokens, duplicate_tokens, swap_tokens, replace_token, insert_word, change_number, nudge_number,
    change_element_type, change_dimension, change_value, change_name, change_string, change_size, rename_op,
    delete_lines, move_line, truncate, repeat_text, nest, lengthen, odd_character, bomb, module_attributes,
    argument_attributes,
)  # fmt: skip
"""Every mutator of texts: it changes the tokens in place."""
