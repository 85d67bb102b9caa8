"""Locations in text: every form that MLIR prints, aliases before and after their use, and what is wrong with others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gcomp.errors import ParseError
from gcomp.ir.locations import describe
from gcomp.ir.program import Program
from gcomp.ir.text import parse_module, print_module

FILETESTS = Path(__file__).parents[2] / "filetests"

HEAD = """{before}
module {{
  func.func @main(%x: tensor<f32>) -> tensor<f32> {{
    %y = stablehlo.sine %x : tensor<f32> loc({place})
    return %y : tensor<f32>
  }}
}}
{after}
"""


def place(text: str, before: str = "", after: str = "") -> str:
    program = Program.parse(HEAD.format(place=text, before=before, after=after))
    return next(describe(op.location) for op in program.ops() if op.name == "stablehlo.sine")


@pytest.mark.parametrize(
    "text, wanted",
    [
        ('"a.py":4:62', "a.py:4:62"),
        ('"a.py":4:62 to :72', "a.py:4:62"),
        ('"a.py":4:62 to 5:3', "a.py:4:62"),
        ('"sin"("a.py":4:1 to :2)', "sin (a.py:4:1)"),
        ('callsite("f"("a.py":1:2) at "b.py":3:4 to 4:5)', "f (a.py:1:2), called at b.py:3:4"),
        ('fused["a.py":1:2 to :3, "b"]', "a.py:1:2 + b"),
        ('fused<"cse">["a.py":1:2, unknown, "b"]', "a.py:1:2 + b"),
    ],
)
def test_every_form_is_read_in_place_and_by_an_alias(text: str, wanted: str) -> None:
    assert place(text) == wanted
    assert place("#here", before=f"#here = loc({text})") == wanted
    assert place("#here", after=f"#here = loc({text})") == wanted


def test_aliases_may_name_others_in_any_order() -> None:
    definitions = [
        '#loc = loc("b")',
        '#l3 = loc("f"(#l1))',
        "#l1 = loc(callsite(#l2 at #loc))",
        '#l2 = loc("a.py":1:2)',
    ]
    after = "\n".join(definitions)
    assert place("#l3", after=after) == "f (a.py:1:2, called at b)"
    assert place("#l3", before="\n".join(reversed(definitions))) == place("#l3", before=after)
    assert place("fused[#l2, #l2, #l3]", after=after) == "a.py:1:2 + a.py:1:2 + f (a.py:1:2, called at b)"


@pytest.mark.parametrize(
    "after, why",
    [
        ("", "undefined location alias"),
        ("#loc2 = loc(unknown)", "undefined location alias"),
        ("#loc = loc(callsite(#loc at #loc))", "defined by itself"),
        ("#loc = loc(#loc2)\n#loc2 = loc(#loc)", "defined by itself"),
        ("\n".join(f"#loc{i or ''} = loc(#loc{i + 1})" for i in range(5000)), "undefined location alias"),
        ('#loc = loc("a.py":1:)', "cannot read"),
        ("#loc = loc(7)", "cannot read"),
        ("#loc = 7", "undefined"),
    ],
)
def test_what_is_wrong_is_said(after: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        place("#loc", after=after)


def test_what_is_printed_with_locations_is_read_again() -> None:
    """Each op has one location, whatever its form."""
    for folder in ("chlo", "gcomp", "stablehlo"):
        for file in sorted((FILETESTS / folder).glob("*.mlir")):
            if "invalid" not in file.name:
                _reads_again(file.read_text("utf-8"))


def _reads_again(text: str) -> None:
    for part in re.split(r"^// -----", text, flags=re.MULTILINE):
        if "func.func" not in part:
            continue
        module = parse_module(part)
        printed = print_module(module, locations=True)
        assert printed == print_module(parse_module(printed), locations=True)


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("sdy.slice @m", "the op sdy.slice is not registered"),
        ("stablehlo.sin %x", "the op stablehlo.sin is not registered"),
    ],
)
def test_an_op_that_there_is_not_is_named_with_its_line(op: str, why: str) -> None:
    text = f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n  {op} : tensor<f32>\n  return %x : tensor<f32>\n}}"
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert (caught.value.why or "").startswith(why) and (caught.value.where or "").startswith("<text>:2:")
