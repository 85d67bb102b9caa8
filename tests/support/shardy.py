"""Shardy inside jaxlib: its rules, and its propagation, for programs of gcomp."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from jax._src.interpreters import mlir
from jaxlib.mlir import ir as jaxlib
from jaxlib.mlir.passmanager import PassManager
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from gcomp.ir.program import Program
from gcomp.ir.text import print_module
from gcomp.partitioning import Factor, Kind, ShardingRule

RULE = "sdy.sharding_rule"
_BLOCKED = "blocked_propagation"
_BEFORE = "symbol-dce,sdy-lift-inlined-meshes,sdy-constant-or-scalar-splitter,symbol-dce"
_PROPAGATION = (
    "sdy-add-data-flow-edges,sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-user-priority-propagate,"
    "func.func(sdy-sink-data-flow-edges),sdy-close-shardings"
)


@cache
def _context() -> jaxlib.Context:
    return mlir.make_ir_context()


def _run(text: str, passes: str) -> jaxlib.Module:
    module = jaxlib.Module.parse(text, _context())
    with _context():
        PassManager.parse(f"builtin.module({passes})").run(module.operation)
    return module


def _walk(op: jaxlib.Operation) -> Iterator[jaxlib.Operation]:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from _walk(inner.operation)


# ---- rules ----------------------------------------------------------------------------------------------------------


def rule_texts(module: ModuleOp) -> dict[str, list[str | None]]:
    """Op name -> the texts of Shardy's rules for the ops of this name, in order; None where it has none.

    Raises MLIRError where jaxlib does not take the module.
    """
    parsed = _run(print_module(module), "func.func(sdy-populate-op-sharding-rules)")
    found: dict[str, list[str | None]] = {}
    for op in _walk(parsed.operation):
        said = str(op.attributes[RULE]) if RULE in op.attributes else None
        found.setdefault(op.name, []).append(said and said.removeprefix("#sdy.op_sharding_rule<")[:-1])
    return found


def rules_of(program: Program) -> Callable[[Operation], ShardingRule | None]:
    """Shardy's rules for the ops of a program."""
    texts, seen = rule_texts(program.module), Counter[str]()
    found: dict[Operation, ShardingRule] = {}
    for op in program.module.walk():
        said = texts.get(op.name, [])
        text = said[seen[op.name]] if seen[op.name] < len(said) else None
        seen[op.name] += 1
        if text is not None:
            found[op] = parse_rule(text)
    return found.get


def parse_rule(text: str) -> ShardingRule:
    """A rule of Shardy's text. A factor along which it blocks propagation becomes one for each dimension."""
    mappings, _, rest = text.partition(" {")
    sizes = dict(re.findall(r"(\w+)=(\d+)", rest.partition("}")[0]))
    lists = {word: names.split(", ") for word, names in re.findall(r"(\w+)=\{([^}]*)\}", rest.partition("}")[2])}
    blocked = lists.pop(_BLOCKED, [])
    kinds = {name: Kind(word.replace("_", "-")) for word, names in lists.items() for name in names}
    index: dict[object, int] = {}
    factors: list[Factor] = []

    def number(name: str, place: tuple[int, int]) -> int:
        key = (name, place) if name in blocked else name
        if key not in index:
            index[key] = len(factors)
            factors.append(Factor(int(sizes[name]), kinds.get(name, Kind.PASS_THROUGH)))
        return index[key]

    def side(part: str, first: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
        return tuple(
            tuple(
                tuple(number(name, (first + t, d)) for name in re.findall(r"z_\d+|[a-z]", dim))
                for d, dim in enumerate(dims.split(", "))
            )
            if dims
            else ()
            for t, dims in enumerate(re.findall(r"\[([^\]]*)\]", part))
        )

    before, _, after = mappings.partition("->")
    operands = side(before, 0)
    results = side(after, len(operands))
    return ShardingRule(tuple(factors), operands, results)


# ---- propagation ----------------------------------------------------------------------------------------------------


def with_own_constants(program: Program) -> Program:
    """The program as Shardy's import leaves it: each use of a constant has a constant of its own."""
    text = str(_run(print_module(program.module), _BEFORE)).replace("sdy.constant", "stablehlo.constant")
    return Program.parse(re.sub(r" \{stablehlo\.mesh = [^\n]*\}\n", "\n", text))


def propagated(program: Program) -> Program:
    """The program with the shardings that Shardy's propagation gives its values."""
    return Program.parse(
        str(_run(print_module(program.module), _PROPAGATION)).replace("sdy.constant", "stablehlo.constant")
    )
