"""`if` in rewritten code: one branch as Python takes it, or both in the program, of which a run takes one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from gcomp.errors import GcompError, UnsupportedError, UsageError
from gcomp.frontends.python.desugaring import VALUE
from gcomp.frontends.python.variables import Undefined, Unset, Variables, check_unchanged, is_traced, statement
from gcomp.ir import stablehlo as hlo
from gcomp.ir.builder import Builder
from gcomp.tensors import trees
from gcomp.tensors.branching import Branch, Filler, choose, is_same, is_static, join_leaves, predicate, type_of
from gcomp.tensors.site import users_code, where_here
from gcomp.tensors.tensor import Tensor
from gcomp.tensors.tracing import OPEN

Run = Callable[[], object]


def if_(test: object, then: Run, other: Run, names: Sequence[str]) -> None:
    """`if test: ...`."""
    if is_traced(test):
        choose_branch(cast(Tensor, test), then, other, Variables(names, then, other))
    elif test:
        then()
    else:
        other()


def choose_branch(test: Tensor, then: Run, other: Run, variables: Variables) -> None:
    """Trace both branches of an `if` on a tensor into one conditional op, and rebind the variables to its results."""
    b, before = OPEN.traces[-1], variables.get()
    ends: list[list[Any]] = []
    with statement("if"):
        chosen = predicate(b, test)
        state = variables.state()
        branches = [Branch(b, lambda run=run: _run_branch(run, variables, before, ends)) for run in (then, other)]
        variables.set(before)
        check_unchanged(variables, state)
        values: list[Any] = []
        columns: list[list[Any]] = []
        for i, name in enumerate(variables.names):
            structure, leaves = _join(b, name, [end[i] for end in ends])
            values.append((structure, len(columns)))
            columns += leaves
        for branch, leaves in zip(branches, zip(*columns, strict=True) if columns else ((), ()), strict=True):
            branch.leaves = list(leaves)
        pairs = zip(variables.names, values, strict=True)
        labels = [call_name(name) for name, value in pairs for _ in range(_count(value))]
        merged = choose(b, hlo.IfOp, chosen, branches, labels)
    variables.set([_take(value, merged) for value in values])


def _run_branch(run: Run, variables: Variables, before: Sequence[Any], ends: list[list[Any]]) -> list[Any]:
    """Run a branch from the values before it; note the values after it."""
    variables.set(before)
    with users_code():
        try:
            run()
        except GcompError:
            raise
        except Exception as error:
            raise UnsupportedError(
                f"a branch raises {type(error).__name__}, and only a run knows whether it is taken",
                where=where_here(), why=str(error) or None, fix="check the inputs before the call",
            ) from error  # fmt: skip
    ends.append(variables.get())
    return []


def _count(value: tuple[Any, int]) -> int:
    return len(trees.leaves_of(value[0]))


def _take(value: tuple[Any, int], merged: Sequence[Any]) -> Any:
    structure, start = value
    if isinstance(structure, Unset | Undefined):
        return structure
    return trees.unflatten(structure, merged[start : start + _count(value)])


def _join(b: Builder, name: str, ends: Sequence[Any]) -> tuple[Any, list[list[Any]]]:
    """The structure of a variable after branches, and for each of its leaves the branches' values."""
    if all(end is ends[0] for end in ends) and (isinstance(ends[0], Unset | Undefined)):
        return ends[0], []
    unset = [end for end in ends if isinstance(end, Unset | Undefined)]
    flat = [trees.flatten(end) for end in ends if not isinstance(end, Unset | Undefined)]
    if unset and name != VALUE:
        return Undefined(name, "it is set in one branch only, and only a run knows which is taken"), []
    structures = [structure for _, structure in flat]
    if name != VALUE and (why := _unlike(b, flat)):
        return Undefined(name, why), []
    if any(s != structures[0] for s in structures):
        raise UsageError(
            f"the branches give {call_name(name)} different structures", why=" and ".join(map(repr, structures)),
            fix="return the same kind of value from each branch" if name == VALUE else None,
        )  # fmt: skip
    if not unset:
        return structures[0], [list(column) for column in zip(*(leaves for leaves, _ in flat), strict=True)]
    # What is returned is not read before it is set.
    leaves = flat[0][0]
    fillers = [leaf if is_static(leaf) else Filler(*type_of(b, leaf)) for leaf in leaves]
    first = isinstance(ends[0], Unset | Undefined)
    pairs = zip(fillers, leaves, strict=True) if first else zip(leaves, fillers, strict=True)
    return structures[0], [list(pair) for pair in pairs]


def _unlike(b: Builder, flat: Sequence[tuple[list[Any], Any]]) -> str | None:
    """Why a variable has no one type after branches with these leaves and structures; None where it has."""
    if any(structure != flat[0][1] for _, structure in flat):
        return "the branches give it different structures: " + " and ".join(repr(s) for _, s in flat)
    for column in zip(*(leaves for leaves, _ in flat), strict=True):
        try:
            if not is_same(column):
                join_leaves(b, column, "it")
        except UsageError as error:
            return f"{error.what}: {error.why}"
    return None


def call_name(name: str) -> str:
    return "the returned value" if name == VALUE else repr(name)
