"""What each part of gcomp has for each op of the graph level, and what is missing.

    python -m tools.audit                    every pair of op and facet that is missing; exit status 1 if there is one
    python -m tools.audit stablehlo.add      what each facet has for an op: its row, or why it has none

A facet is a table of gcomp that must say something of every op: what its result is, what it costs, how it is
differentiated, ... For each op it has a row, or a reason why there is none. Rows and reasons are read from the facet's
own table, which stays their only home. docs/generated/ops.md is made of the same facets (`python -m tools.op_table`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from xdsl.ir import Operation
from xdsl.traits import IsTerminator

import gcomp.analysis.indexing.rows
import gcomp.autodiff.rows
import gcomp.lowering.tiles.elements
import gcomp.padding.rows
import gcomp.reference.interpreter
import gcomp.testing.generate.program  # noqa: F401  these fill their tables
from gcomp.analysis.indexing.table import MAPS
from gcomp.analysis.indexing.table import WITHOUT as NO_MAPS
from gcomp.analysis.work import COSTED
from gcomp.autodiff.sweeps import ROWS as DERIVATIVES
from gcomp.autodiff.table import Refused
from gcomp.ir.families import GRAPH_OPS, PLAIN
from gcomp.ir.host import HostOp
from gcomp.ir.op import GraphOp
from gcomp.ir.roles import ROLES
from gcomp.ir.rules import Rule
from gcomp.ir.sdy import ShardingGroupOp
from gcomp.ir.types import COMPLEX
from gcomp.ir.viewing import ViewAsComplexOp, ViewAsRealOp
from gcomp.lowering.tiles.elements.table import ROWS as TILES
from gcomp.lowering.tiles.elements.table import WITHOUT as NO_TILES
from gcomp.lowering.xla.legality import REFUSED
from gcomp.padding.table import ROWS as PADDING
from gcomp.pairs.without import WITHOUT as NO_PAIRS
from gcomp.partitioning import RULES
from gcomp.partitioning import WITHOUT as NO_RULES
from gcomp.passes.convert import complex_to_pairs, decompose, expand_chlo
from gcomp.passes.rewriting import Rewrite
from gcomp.reference.noise import FUNCTIONS, NOISY
from gcomp.reference.numpy import bounds
from gcomp.reference.table import MEANINGS, UNMODELLED
from gcomp.reference.varied import MOVES, name_of
from gcomp.testing.generate.growth import STEPS
from gcomp.testing.generate.without import WITHOUT as NO_STEPS
from tests.mutants.front_doors.folders import FOLDERS
from tests.support.samples import WITHOUT_JAXLIB
from tools.op_texts import samples_of

Op = type[GraphOp]
Said = Mapping[Op, str]
"""Of op classes, what a facet says: its row in a word or the file that holds it, or the reason why there is none."""

TERMINATORS = [op for op in GRAPH_OPS if op.has_trait(IsTerminator)]
_ENDS = dict.fromkeys(TERMINATORS, "the end of a region: the op around it says what that means")


@dataclass(frozen=True)
class Facet:
    """What is asked of every op: where the answers lie, and what they are."""

    name: str
    home: str
    """The file or folder that a row is added to."""
    rows: Callable[[], Said]
    reasons: Callable[[], Said]

    def cell(self, op: Op) -> str | None:
        """What is said of an op; None where nothing is."""
        return self.rows().get(op) or self.reasons().get(op)


def _none() -> Said:
    return {}


def _of_graph(table: Mapping[type[Operation], str]) -> Said:
    return {op: table[op] for op in GRAPH_OPS if op in table}


def _file(row: Callable[..., object]) -> str:
    """The file in which the function of a row stands."""
    found = inspect.unwrap(row.func if isinstance(row, partial) else row)
    module = found.__module__
    if module == "gcomp.reference.table":
        module = inspect.getclosurevars(found).nonlocals["function"].__module__
    return f"{module.replace('.', '/')}.py"


# ---- facets ---------------------------------------------------------------------------------------------------------


@cache
def _forms() -> Said:
    said: dict[Op, str] = {}
    for op in GRAPH_OPS:
        op.get_irdl_definition()
        said[op] = "none" if op in TERMINATORS else "inferred" if op.INFERS else "declared"
    return said


@cache
def _meanings() -> Said:
    return {op: _file(MEANINGS[op].row) for op in GRAPH_OPS if op in MEANINGS and op not in UNMODELLED}


@cache
def _unmodelled() -> Said:
    return {**_of_graph({op: f"*declared only*: {why}" for op, why in UNMODELLED.items()}), **_ENDS}


_AS_ANOTHER = {"broadcast": "broadcast_in_dim", "dot": "dot_general"}
"""Ops that the reference computes as another one."""
_MOVING = tuple(f"gcomp/reference/{name}.py" for name in ("constant", "control", "host", "viewing"))
"""Files whose rows hand values on."""


@cache
def _bounds() -> Said:
    said: dict[Op, str] = {}
    for op, where in _meanings().items():
        name = _AS_ANOTHER.get(name_of(op), name_of(op))
        if name in bounds.EXACT:
            said[op] = "exact"
        elif name in bounds.ULPS:
            said[op] = f"{bounds.ULPS[name]:g} ulp"
        elif name in bounds.BOUNDS:
            said[op] = "a formula"
        elif name in bounds.UNBOUNDED:
            said[op] = "original's"
        elif MEANINGS[op].enters:
            said[op] = "of the ops inside"
        elif where in _MOVING:
            said[op] = "exact"
    return said


_NO_NUMBERS = "it has no meaning of which numbers could be off"


@cache
def _no_meaning() -> Said:
    return {**dict.fromkeys(_of_graph(UNMODELLED), _NO_NUMBERS), **_ENDS}


@cache
def _noise() -> Said:
    said: dict[Op, str] = {}
    for op in _meanings():
        name = name_of(op)
        if MEANINGS[op].enters:
            said[op] = "of the ops inside"
        elif name in NOISY:
            said[op] = "none" if name in MOVES else "some ulps" if name in FUNCTIONS else "an ulp"
    return said


@cache
def _costs() -> Said:
    return {op: str(ROLES[op]) for op in GRAPH_OPS if op in COSTED}


@cache
def _maps() -> Said:
    return {op: _file(MAPS[op]) for op in GRAPH_OPS if op in MAPS}


def _no_maps() -> Said:
    return _of_graph(NO_MAPS)


@cache
def _rules() -> Said:
    return {op: _file(RULES[op]) for op in GRAPH_OPS if op in RULES}


def _no_rules() -> Said:
    return _of_graph(NO_RULES)


@cache
def _derivatives() -> Said:
    kinds = {op: row for op in GRAPH_OPS if (row := DERIVATIVES.get(op)) is not None and not isinstance(row, Refused)}
    return {op: type(row).__name__.lower() for op, row in kinds.items()}


@cache
def _no_derivative() -> Said:
    return {op: row.reason for op in GRAPH_OPS if isinstance(row := DERIVATIVES.get(op), Refused)}


@cache
def _padding() -> Said:
    return {op: PADDING[op].kind for op in GRAPH_OPS if op in PADDING and PADDING[op].kind != "refused"}


@cache
def _no_padding() -> Said:
    refused = {op: PADDING[op].reason for op in GRAPH_OPS if op in PADDING and PADDING[op].kind == "refused"}
    return {**refused, **_ENDS}


def _roots(rewrites: tuple[Rewrite, ...]) -> set[type[Operation]]:
    return {op for r in rewrites for op in ((r.lhs.op,) if isinstance(r, Rule) else r.roots)}


@cache
def _pairs() -> Said:
    return {op: "by parts" for op in GRAPH_OPS if op in _roots(complex_to_pairs.PATTERNS)}


@cache
def _no_pairs() -> Said:
    before = {"decompose": decompose.REWRITES, "expand-chlo": (expand_chlo.RaggedDot(), expand_chlo.Scan())}
    said: dict[Op, str] = {op: "it takes no complex numbers" for op in GRAPH_OPS if not op.ELEMENTS & COMPLEX}
    for name, rewrites in before.items():
        said |= {op: f"{name} writes it as other ops before" for op in GRAPH_OPS if op in _roots(rewrites)}
    said |= _of_graph(NO_PAIRS)
    return {op: why for op, why in said.items() if op not in _pairs()}


@cache
def _tiles() -> Said:
    return {op: _file(TILES[op]) for op in GRAPH_OPS if op in TILES}


def _no_tiles() -> Said:
    return _of_graph(NO_TILES)


@cache
def _xla() -> Said:
    return {op: "yes" for op in GRAPH_OPS if op.name not in REFUSED}


def _no_xla() -> Said:
    return {op: REFUSED[op.name] for op in GRAPH_OPS if op.name in REFUSED}


@cache
def _steps() -> Said:
    said: dict[Op, str] = {}
    for name, step in STEPS.items():
        said |= {op: name for op in GRAPH_OPS if op in step.makes and op not in said}
    return said


def _no_steps() -> Said:
    return _of_graph(NO_STEPS)


@cache
def _samples() -> Said:
    return {op: f"{count} program{'s' * (count > 1)}" for op in GRAPH_OPS if (count := len(samples_of(op.name)))}


def _no_samples() -> Said:
    return {
        **{op: "jaxlib has no quant dialect to read them" for op in GRAPH_OPS if op.name in WITHOUT_JAXLIB},
        HostOp: "its programs are cut around it: those of frontends have it",
        **dict.fromkeys((ViewAsRealOp, ViewAsComplexOp), "it is for GPUs only: the samples of view-as-real make it"),
    }


@cache
def _mutants() -> Said:
    """The folders with a row of an op in which automatic mutants change lines."""
    files = {op: {file for rows in (_maps, _tiles) if (file := rows().get(op))} for op in GRAPH_OPS}
    for op in GRAPH_OPS:
        files[op] |= {_file(PADDING[op].rule)} if op in _padding() else set()
    said: dict[Op, str] = {}
    for op, found in files.items():
        names = sorted({folder.name for folder in FOLDERS for file in found if file.startswith(f"gcomp/{folder.name}")})
        if names:
            said[op] = ", ".join(names)
    return said


def _no_mutants() -> Said:
    why = "no table but that of meanings has a row of it"
    return {**dict.fromkeys((ViewAsRealOp, ViewAsComplexOp, ShardingGroupOp), why), **_ENDS}


FACETS: tuple[Facet, ...] = (
    Facet("form", "gcomp/ir", _forms, _none),
    Facet("meaning", "gcomp/reference", _meanings, _unmodelled),
    Facet("error bound", "gcomp/reference/numpy/bounds.py", _bounds, _no_meaning),
    Facet("noise", "gcomp/reference/noise.py", _noise, _no_meaning),
    Facet("cost", "gcomp/analysis/work.py", _costs, _none),
    Facet("indexing", "gcomp/analysis/indexing", _maps, _no_maps),
    Facet("sharding", "gcomp/partitioning", _rules, _no_rules),
    Facet("derivative", "gcomp/autodiff", _derivatives, _no_derivative),
    Facet("padding", "gcomp/padding", _padding, _no_padding),
    Facet("pairs", "gcomp/pairs", _pairs, _no_pairs),
    Facet("tile", "gcomp/lowering/tiles/elements", _tiles, _no_tiles),
    Facet("XLA", "gcomp/lowering/xla/legality.py", _xla, _no_xla),
    Facet("generator", "gcomp/testing/generate", _steps, _no_steps),
    Facet("samples", "tests/support/samples", _samples, _no_samples),
    Facet("mutant", "tests/mutants/front_doors", _mutants, _no_mutants),
)


def missing() -> list[tuple[str, str]]:
    """(op, facet) of all that nothing is said of."""
    return [(op.name, facet.name) for op in GRAPH_OPS for facet in FACETS if facet.cell(op) is None]


def stale() -> list[tuple[str, str]]:
    """(op, facet) of all reasons why there is no row that stand beside a row."""
    return [(op.name, facet.name) for facet in FACETS for op in facet.reasons() if op in facet.rows()]


def described(name: str) -> list[str]:
    """What each facet says of an op, a line each."""
    op = next((op for op in GRAPH_OPS if op.name == name), None)
    if op is None:
        return []
    plain = [f"broadcasts {PLAIN[op].name}"] if op in PLAIN else []
    lines = [f"{op.name}: {op.__module__}.{op.__name__}", *plain]
    for facet in FACETS:
        row, reason = facet.rows().get(op), facet.reasons().get(op)
        said = f"{row}" if row else f"no row: {reason}" if reason else f"MISSING: add it to {facet.home}"
        lines.append(f"  {facet.name:12} {said}")
    return lines


def main(names: list[str]) -> int:
    """Print what was asked for; 1 where something is missing, 2 where there is no such op."""
    for name in names:
        lines = described(name)
        if not lines:
            print(f"there is no op {name}")
            return 2
        print("\n".join(lines))
    gaps = [(op, facet) for op, facet in missing() if not names or op in names]
    if not names:
        print("\n".join(f"{op}: {facet} is missing" for op, facet in gaps) or "nothing is missing")
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
