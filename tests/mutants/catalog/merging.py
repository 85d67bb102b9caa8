"""Mistakes in cse and dce: ops merged that are not the same, and ops dropped that somebody needs."""

from __future__ import annotations

from functools import partial

from gcomp.ir import stablehlo as hlo
from gcomp.passes import rewriting
from gcomp.passes.graph import cse, dce
from tests.mutants import edits
from tests.mutants.mutant import control, mutant

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
    "cse-ignores-property-values",
    classes=(38,),
    about="of properties, only their names are compared",
    edits=[
        (
            f"{CSE}:_key",
            "frozenset(op.properties.items())",
            "frozenset(op.properties.items() if op.name != 'stablehlo.compare' else op.properties)",
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
    "cse-compares-op-names-in-regions",
    classes=(34, 38),
    about="of regions, the ops are compared and not their operands",
    edits=[(f"{CSE}:_block_key", "keys.append(_key(op, numbers))", "keys.append(op.name)")],
)
wrong(
    "cse-numbers-arguments-alike",
    classes=(34,),
    about="arguments of regions are not told apart: swapped ones compare equal",
    edits=[(f"{CSE}:_block_key", "        numbers[arg] = len(numbers)", "        numbers[arg] = 0")],
)
wrong(
    "cse-first-block",
    classes=(38,),
    about="of several regions only the first is compared: branches of if, loop bodies",
    edits=[(f"{CSE}:_key", "for r in op.regions for b in r.blocks", "for r in op.regions[:1] for b in r.blocks")],
)
wrong(
    "cse-leaks-from-branches",
    classes=(32,),
    about="an op in a branch gives its results to the ops after the branch",
    edits=[
        (
            f"{CSE}:_merge",
            "changed |= _merge(inner, (scope, *around), context)",
            "changed |= _merge(inner, (scope, *around), context, scope)",
        ),
        (
            f"{CSE}:_merge",
            "context: PassContext) -> bool:",
            "context: PassContext, shared: Scope | None = None) -> bool:",
        ),
        (f"{CSE}:_merge", "scope: Scope = {}", "scope: Scope = {} if shared is None else shared"),
    ],
)
wrong(
    "cse-results-swapped",
    classes=(37,),
    about="the results of an op with several are handed on in the opposite order",
    edits=[
        (
            f"{CSE}:_replace",
            "zip(op.results, first.results, strict=True)",
            "zip(op.results, first.results if len(op.results) < 2 or op.results[0].type != op.results[-1].type "
            "else list(first.results)[::-1], strict=True)",
        )
    ],
)
wrong(
    "cse-forgets-to-say",
    classes=(40,),
    about="merging inside regions is not reported as a change",
    edits=[
        (
            f"{CSE}:_merge",
            "changed |= _merge(inner, (scope, *around), context)",
            "_merge(inner, (scope, *around), context)",
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
            f"{CSE}:_merge",
            "[r.type for r in first.results] != [r.type for r in op.results]",
            "len(first.results) != len(op.results)",
        )
    )


@mutant(
    "cse-constants-by-value", "cse", classes=(9, 18), about="constants are compared as numbers: 0.0 and -0.0 are merged"
)
def _() -> None:
    key = cse._key  # pyright: ignore[reportPrivateUsage]

    def by_value(op: object, numbering: object = None) -> object:
        if isinstance(op, hlo.ConstantOp) and (op.elements_attr.array() == op.elements_attr.array()).all():
            array = op.elements_attr.array()
            return ("constant", op.results[0].type, tuple(array.reshape(-1).tolist()))
        return key(op, numbering)  # pyright: ignore

    cse._key = by_value  # pyright: ignore


right(
    "cse-looks-outside-first",
    about="an equal op of an outer region is taken before one of the same block",
    edits=[
        (
            f"{CSE}:_merge",
            "scope.get(key) or next((s[key] for s in around if key in s), None)",
            "next((s[key] for s in reversed(around) if key in s), None) or scope.get(key)",
        )
    ],
)
right(
    "cse-no-nested-scopes",
    about="ops in regions are merged among themselves only",
    edits=[(f"{CSE}:_merge", "_merge(inner, (scope, *around), context)", "_merge(inner, (), context)")],
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
    "dce-one-result-unused",
    classes=(37,),
    about="an op with several results is dead where the last one is not used",
    edits=[
        (
            "passes.rewriting:is_dead",
            "all(r.first_use is None for r in op.results)",
            "all(r.first_use is None for r in op.results[-1:])",
        )
    ],
)
dead(
    "dce-forgets-called-by-called",
    classes=(42,),
    about="functions that only called functions call are dropped",
    edits=[(f"{DCE}:_drop_functions", "                pending.append(functions[name])", "                pass")],
)
dead(
    "dce-forgets-composites",
    classes=(42,),
    about="decompositions count as uncalled",
    edits=[(f"{DCE}:_mentioned", "isinstance(attribute, SymbolRefAttr)", "False")],
)
dead(
    "dce-forgets-nested-calls",
    classes=(42,),
    about="calls inside branches and loops do not count",
    edits=[(f"{DCE}:_drop_functions", "_mentioned(pending.pop().walk())", "_mentioned(pending.pop().body.block.ops)")],
)
dead(
    "dce-forgets-nested-weights",
    classes=(32,),
    about="weights that are read inside regions and callees only are freed",
    edits=[
        (
            f"{DCE}:DeadCodeElimination.run",
            "for op in program.ops() if isinstance(op, WeightOp)",
            "for op in program.block.ops if isinstance(op, WeightOp)",
        )
    ],
)
dead(
    "dce-forgets-to-say",
    classes=(40,),
    about="what is dead inside a region is removed without a word",
    edits=[(f"{DCE}:_sweep", "                changed |= _sweep(inner)", "                _sweep(inner)")],
)
dead(
    "dce-forward",
    classes=(37,),
    about="one walk goes forward: what only dead ops used stays",
    edits=[
        (f"{DCE}:_sweep", "op = block.last_op", "op = block.first_op"),
        (f"{DCE}:_sweep", "previous = op.prev_op", "previous = op.next_op"),
    ],
)


@mutant(
    "dce-drops-random-draws",
    "dce",
    classes=(35,),
    about="draws that nobody uses are dropped, so that later ones give other numbers",
)
def _() -> None:
    is_dead = dce.is_dead
    dce.is_dead = lambda op: is_dead(op) or (isinstance(op, hlo.RngOp) and op.result.first_use is None)


@control("dce-sweeps-twice", "dce", about="dead code is looked for twice")
def _() -> None:
    sweep = dce._sweep  # pyright: ignore[reportPrivateUsage]

    def twice(region: object) -> bool:
        first = sweep(region)  # pyright: ignore
        return sweep(region) or first  # pyright: ignore

    dce._sweep = twice  # pyright: ignore


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
    "match-first-element",
    classes=(18, 41),
    about="a constant of more than four elements is a splat if its first element says so",
    edits=[(f"{DRIVER}:_matches_constant", "not (array == first).all()", "not (array.reshape(-1)[:4] == first).all()")],
)
driver(
    "match-rebinds-names",
    classes=(7, 38),
    about="a name captured twice may mean two values: x - y matches x - x",
    edits=[
        (
            f"{DRIVER}:Match.bind",
            "return known is value or",
            "return isinstance(known, SSAValue) and known.type == value.type or known is value or",
        )
    ],
)
driver(
    "match-ignores-conditions-inside",
    classes=(41,),
    about="the condition of a rule is not asked inside regions of ops",
    edits=[
        (
            f"{DRIVER}:match",
            "    conditions = ",
            "    if op.parent_op().name != 'func.func':\n        return found\n    conditions = ",
        )
    ],
)
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
driver(
    "changed-only-by-rules",
    classes=(40,),
    about="ops that the driver drops as dead are not reported as a change",
    edits=[
        (f"{DRIVER}:_Driver.visit", "        self.erase(op)\n        self.changed = True", "        self.erase(op)")
    ],
)


@control("worklist-last-first", "canonicalize", about="the worklist is a stack")
def _() -> None:
    edits.make(edits.Edit(f"{DRIVER}:_Driver.run", "self.worklist.popleft()", "self.worklist.pop()"))


@control("worklist-everything", "canonicalize", about="every op is queued, of whatever kind")
def _() -> None:
    edits.make(
        edits.Edit(
            f"{DRIVER}:_Driver.enqueue", "op.name in self.by_root and op not in self.queued", "op not in self.queued"
        )
    )
    edits.make(edits.Edit(f"{DRIVER}:_Driver.visit", "self.by_root[op.name]", "self.by_root.get(op.name, ())"))
    assert rewriting.apply_rewrites
