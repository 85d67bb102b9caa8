"""The custom-call targets that a program may name. Everything else is refused, Python callbacks above all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from gcomp.errors import ArtifactError

ALLOWED = re.compile(
    r"lapack_[sdcz]\w+_ffi"  # jaxlib's dense linear algebra
    r"|tridiagonal_solve_perturbed_ffi"
    r"|mhlo\.(topk|erf|tan|asin|acos|atan|sinh|cosh|asinh|acosh|atanh)"  # ops that JAX writes as calls
    r"|Sharding|ApproxTopK|TopK"
)

_NAMED = re.compile(r'custom_call\s+@(?:"([^"]*)"|([\w$.-]+))|call_target_name\s*=\s*"([^"]*)"')


def refused(targets: Iterable[str]) -> list[str]:
    """Those of the targets that are not allowed, in order and once each."""
    return [target for target in dict.fromkeys(targets) if not ALLOWED.fullmatch(target)]


def targets_in(text: str) -> list[str]:
    """The targets that a program's text or template names in a usual way: enough for a first, early look."""
    return [a or b or c for a, b, c in _NAMED.findall(text)]


def checked_targets(text: str) -> list[str]:
    """The targets that a program calls, read with MLIR's own parser: text can spell a call in many ways.

    Raises ArtifactError for a target that is not allowed, for an op of another dialect than StableHLO's, and for one
    that would wait for a stream that nobody feeds.
    """
    if _SUSPECT.search(text) is None:
        return []
    targets: list[str] = []
    for name, target in _ops(text):
        if name.partition(".")[0] not in _DIALECTS or name in _STREAMS:
            raise ArtifactError("The program has an op that gcomp does not run.", why=name[:80])
        if name == "stablehlo.custom_call":
            targets.append(target)
    if bad := refused(targets):
        raise ArtifactError("The program calls a custom function that gcomp does not allow.", why=bad[0][:80])
    return targets


_SUSPECT = re.compile(r"custom_call|infeed|outfeed|send|recv|\\")
"""What no program without such ops contains; a backslash may spell any of them."""
_DIALECTS = frozenset(("builtin", "func", "stablehlo", "chlo"))
_STREAMS = frozenset(("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv"))


def _ops(text: str) -> list[tuple[str, str]]:
    """The name of every op, regions included, and what it calls if it is a custom call."""
    mlir: Any = import_module("jax._src.interpreters.mlir")
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    with context:
        try:
            module = mlir.ir.Module.parse(text)
        except mlir.ir.MLIRError as error:
            why = str(error).strip().replace("\n", " ")[:500]
            raise ArtifactError("The program is not StableHLO.", why=why) from None
        return list(_walk(module.operation))


def _walk(root: Any) -> Iterator[tuple[str, str]]:
    pending = [root]
    while pending:
        op = pending.pop()
        is_call = op.name == "stablehlo.custom_call"
        yield op.name, str(op.attributes["call_target_name"].value) if is_call else ""
        pending += [inner.operation for region in op.regions for block in region for inner in block]
