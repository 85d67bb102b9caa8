"""Mistakes in cse and dce: ops merged that are not the same, and ops dropped that somebody needs."""

from __future__ import annotations

from functools import partial

from gcomp.ir import stablehlo as hlo
from gcomp.passes.graph import cse
from tests.mutants import edits
from tests.mutants.mutant import mutant

wrong = partial(edits.wrong, target="cse")
right = partial(edits.right, target="cse")
dead = partial(edits.wrong, target="dce")
kept = partial(edits.right, target="dce")

CSE, DCE = "passes.graph.cse", "passes.graph.dce"

# ---- what is the same ----

wrong(
    "cse-ignores-properties",
    classes=(38,),
    about="two ops that differ in a property only are merged (hidet#97)",
    edits=[
        (
            f"{CSE}:_key",
            "frozenset(op.properties.items()) if op.properties else None",
            "frozenset(op.properties.items()) if op.properties and not op.operands else None",
        )
    ],
)
wrong(
    "cse-sorts-operands",
    classes=(38, 22),
    about="operands are compared in any order: x - y and y - x are merged",
    edits=[(f"{CSE}:_key", "else tuple(op.operands)", "else frozenset(op.operands)")],
)
wrong(
    "cse-first-operands",
    classes=(24, 38),
    about="operands after the second are not compared",
    edits=[(f"{CSE}:_key", "else tuple(op.operands)", "else tuple(op.operands)[:2]")],
)
wrong(
    "cse-ignores-regions",
    classes=(31, 38),
    about="two folds of one operand are merged though their bodies differ",
    edits=[(f"{CSE}:_key", "tuple([_block_key(b, numbers) for r in op.regions for b in r.blocks])", "()")],
)
wrong(
    "cse-numbers-arguments-alike",
    classes=(34,),
    about="arguments of regions are not told apart: swapped ones compare equal",
    edits=[
        (
            f"{CSE}:_block_key",
            "for arg in block.args:\n        numbers[arg] = len(numbers)",
            "for arg in block.args:\n        numbers[arg] = 0",
        )
    ],
)


@mutant("cse-merges-random-draws", "cse", classes=(35,), about="two draws of random numbers are merged (torch#192635)")
def _() -> None:
    pure = cse.is_side_effect_free
    cse.is_side_effect_free = lambda op: isinstance(op, hlo.RngOp) or pure(op)


@mutant(
    "cse-merges-types-alike",
    "cse",
    classes=(18, 20),
    about="declared types are not compared: iota of i32 and of i64 (TVM#11794)",
)
def _() -> None:
    edits.make(
        edits.Edit(
            f"{CSE}:_key",
            "None if isinstance(op, GraphOp) and op.INFERS else tuple([r.type for r in op.results])",
            "None",
        )
    )
    edits.make(
        edits.Edit(
            f"{CSE}:_merge_into_scopes",
            "[r.type for r in first.results] != [r.type for r in op.results]",
            "len(first.results) != len(op.results)",
        )
    )


right(
    "cse-keys-as-lists-of-names",
    about="properties are compared in the order of their names",
    edits=[
        (
            f"{CSE}:_key",
            "frozenset(op.properties.items()) if op.properties else None",
            "tuple(sorted(op.properties.items(), key=lambda item: item[0])) if op.properties else None",
        )
    ],
)


# ---- what is dead ----

dead(
    "dce-forgets-called-by-called",
    classes=(42,),
    about="functions that only called functions call are dropped",
    edits=[(f"{DCE}:_drop_functions", "                pending.append(functions[name])", "                pass")],
)


kept(
    "dce-asks-effects-first",
    about="whether an op has effects is asked before whether it is used",
    edits=[
        (
            "passes.rewriting:is_dead",
            "bool(op.results) and all(r.first_use is None for r in op.results) and is_side_effect_free(op)",
            "bool(op.results) and is_side_effect_free(op) and not any(r.first_use for r in op.results)",
        )
    ],
)

# ---- the driver that applies rules ----

driver = partial(edits.wrong, target="canonicalize")
DRIVER = "passes.rewriting"

driver(
    "constant-through-any-broadcast",
    classes=(4, 26),
    about="a repeated vector counts as a constant of its first element",
    edits=[
        (f"{DRIVER}:constant_value", "shape_of(op.operand) == ()", "True"),
        (
            f"{DRIVER}:constant_value",
            "        if scalar is not None:",
            "        if scalar is not None and scalar.size:\n            scalar = scalar.reshape(-1)[0]",
        ),
    ],
)
