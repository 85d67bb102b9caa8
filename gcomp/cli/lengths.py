"""`--lengths` and `--buckets`: which sizes a model is padded to, from a file of lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import gcomp
from gcomp.cli.options import Source, dim_specs
from gcomp.dims import Range
from gcomp.errors import UsageError
from gcomp.options import range_given
from gcomp.padding.buckets import Choice, Cost, choose_buckets, fit_cost, linear, powers_of_two, price_buckets
from gcomp.records import record
from gcomp.runtime.sampling import sizes_for

if TYPE_CHECKING:
    from rich.table import Table

DEFAULT_COUNT = 6


@record
class LengthOptions:
    """The options of `gcomp compile` that are about variable lengths."""

    lengths: Sequence[str] = ()
    buckets: Sequence[str] = ()
    multiple_of: int = 1
    cost: str = "linear"


def buckets_of(
    options: LengthOptions, model: Path, target: str, source: Source
) -> tuple[dict[str, tuple[int, ...]], list[Table]]:
    """The sizes to pad each symbol to, and a table for each that was chosen from lengths. Raises UsageError."""
    ranges = {name: range_given(name, spec) for name, spec in dim_specs(source.dim).items()}
    files = _name_values(options.lengths, ranges, "--lengths")
    given = _name_values(options.buckets, ranges, "--buckets")
    for said, usual, option in ((options.multiple_of, 1, "multiple"), (options.cost, "linear", "cost")):
        if said != usual and not files:
            raise UsageError(
                f"--bucket-{option} says how sizes are chosen, and there are no --lengths to choose them for",
                fix="give --lengths FILE, or leave it out",
            )
    if options.cost not in ("linear", "flops"):
        raise UsageError(f"--bucket-cost is linear or flops, not {options.cost!r}")
    sizes = {name: _numbers(name, text) for name, text in given.items()}
    found, tables = dict[str, tuple[int, ...]](), list["Table"]()
    for name, file in files.items():
        lengths, counts = read_lengths(Path(file)), sizes.pop(name, (DEFAULT_COUNT,))
        if len(counts) != 1:
            raise UsageError(
                f"--buckets {name}={given[name]} names sizes, and --lengths chooses them",
                fix=f"write --buckets {name}=6 for six of them, or leave out --lengths",
            )
        known = ranges.get(name, Range())
        cost = linear if options.cost == "linear" else _by_flops(name, lengths, model, target, source)
        choice = choose_buckets(
            lengths, counts[0], multiple_of=options.multiple_of, most=known.hi, least=known.lo, cost=cost
        )
        found[name] = choice.buckets
        tables.append(comparison(name, lengths, choice, cost, known.hi))
    return found | sizes, tables


def _name_values(values: Sequence[str], ranges: Mapping[str, Range], option: str) -> dict[str, str]:
    """`["seq=6"]` as a dict; a value without a name is the only dimension's that has a range."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals:
            open_ones = [n for n, r in ranges.items() if r.lo != r.hi]
            if len(open_ones) != 1:
                raise UsageError(
                    f"{option} {value} does not say which dimension it is about",
                    fix=f"write {option} NAME={value}, and --dim NAME=1..512 for its range",
                )
            name, rest = open_ones[0], value
        if name in found:
            raise UsageError(f"{option} names {name!r} twice")
        found[name] = rest
    return found


def _numbers(name: str, text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 19 for part in parts):
        raise UsageError(
            f"--buckets {name}={text} is not a number of buckets, nor a list of sizes",
            fix=f"write --buckets {name}=6 with --lengths, or --buckets {name}=32,64,128",
        )
    return tuple(map(int, parts))


def read_lengths(path: Path) -> Counter[int]:
    """The histogram in a text file: a length in each line, and after it how often it occurs, where that is not once."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}", why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}", why="it is not text") from None
    counts = Counter[int]()
    for number, line in enumerate(lines, 1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if not fields:
            continue
        if len(fields) > 2 or not all(f.isascii() and f.isdecimal() and len(f) < 16 for f in fields):
            raise UsageError(
                f"line {number} of {path} is not a length: {line[:40]!r}",
                fix="write one length in each line, or a length and how often it occurs",
            )
        counts[int(fields[0])] += int(fields[1]) if len(fields) == 2 else 1
    return counts


def _by_flops(name: str, lengths: Mapping[int, int], model: Path, target: str, source: Source) -> Cost:
    """The cost of a call as a polynomial of the length, fitted to the target's own count of flops."""
    compiled = gcomp.compile(model, target=target, **source.keywords())
    signature = compiled.signature
    if name not in signature.symbols:
        raise UsageError(f"the model has no symbolic dimension {name!r}")
    low, high = max(min(lengths), signature.ranges[name].lo), max(lengths)
    sizes = sorted({low + (high - low) * i // 4 for i in range(5)})
    return fit_cost(lambda size: float(compiled.flops(**sizes_for(signature, {name: size}))), sizes)


def below(a: float, b: float) -> str:
    """How far a cost is below another."""
    return f"{1 - a / b if b else 0.0:.1%} below"


def comparison(name: str, lengths: Mapping[int, int], choice: Choice, cost: Cost, most: int | None) -> Table:
    """The padded work of chosen buckets beside powers of two, and beside one size for all."""
    from rich.table import Table  # few commands choose buckets

    table = Table("buckets", "sizes", "work", "padding", title=f"{name}: {sum(lengths.values())} lengths")
    powers = price_buckets(lengths, powers_of_two(lengths, most), cost)
    rows = [
        ("optimal", choice),
        ("powers of two", powers),
        ("one size", price_buckets(lengths, [max(choice.buckets)], cost)),
    ]
    for label, found in rows:
        work = f"{found.cost / found.least:.2f} x" if found.least else "-"
        table.add_row(f"{len(found.buckets)} {label}", ", ".join(map(str, found.buckets)), work, f"{found.waste:.1%}")
    table.caption = (
        f"work {below(choice.cost, powers.cost)} that of powers of two, "
        f"and the part for padding {below(choice.padding, powers.padding)} theirs"
    )
    return table
