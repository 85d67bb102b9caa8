"""Reading an artifact back into a model. Imports neither xDSL nor a frontend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

import numpy as np

from gcomp import dims
from gcomp.errors import ArtifactError, UnsupportedError, UsageError
from gcomp.runtime.archive import damage_error
from gcomp.runtime.artifact import MANIFEST, WEIGHTS, Artifact, open_artifact
from gcomp.runtime.engine import engine_of
from gcomp.runtime.executor import Array
from gcomp.runtime.manifest import Manifest
from gcomp.runtime.model import Model
from gcomp.runtime.plan import DeviceSegment, Plan, Value, is_binary, steps_from_json
from gcomp.runtime.signature import Signature, constraints_from_json, parse_dims, ranges_from_json
from gcomp.runtime.stateful import model_of

MAX_DEPTH = 512
"""Of brackets in a program. XLA's parser recurses, and has no bound of its own."""

_NO_BRACKETS = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*+"|->')
_OTHERS = bytes(set(range(256)) - set(b"([{<>}])"))


def load(
    path: str | os.PathLike[str],
    verify: Literal["lazy", "full"] = "lazy",
    *,
    threads: int | None = None,
    executables: int | None = None,
    native: bool = True,
) -> Model:
    """The model in an artifact.

    Everything but weights is checked now; a weight is checked when it is first used, or now with `verify="full"`.
    `threads` is how many threads the model computes with (else GCOMP_THREADS says it). Those of XLA are all models':
    say it for the first. `executables` is as in `Model.keep`. Who loads machine code, and calls it, trusts who made it:
    with `native=False` an artifact that holds any is refused. Raises ArtifactError when the file is damaged or not an
    artifact, UsageError where a setting comes too late or is not the target's, UnsupportedError for what is refused.
    """
    if verify not in ("lazy", "full"):
        raise UsageError(f"verify is 'lazy' or 'full', not {verify!r}.")
    if not isinstance(native, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - users may pass anything
        raise UsageError(f"native is True or False, not {native!r}")
    artifact = open_artifact(path, verify=verify == "full")
    manifest, where = artifact.manifest, os.fspath(path)
    if not native:
        _refuse_native(manifest, where)
    if manifest.native_code != any(map(is_binary, manifest.members)):
        raise damage_error(where, "it does not say the truth about its machine code")
    steps, returned = steps_from_json(manifest.segments, where)
    try:
        plan = Plan(
            target=manifest.target,
            signature=_signature(manifest, where),
            steps=steps,
            results=returned.values,
            fetched=returned.fetched,
            checks=returned.checks,
            buckets=returned.buckets,
            mesh=returned.mesh,
            texts=_texts(artifact, {step.text for step in steps if isinstance(step, DeviceSegment)}, where),
            binaries={name: artifact.member(name) for name in artifact.manifest.members if is_binary(name)},
            weights={
                w.name: Value(w.dtype, tuple(map(str, w.dims)))
                for w in manifest.weights
                if w.argument >= len(manifest.inputs)
            },
            origin=where,
        )
        weights: Mapping[str, Array] = artifact.weights if artifact.weights is not None else {}
        if threads is not None:
            engine_of(plan).set_threads(threads)
        model = model_of(plan, weights, producers=manifest.producers, licences=manifest.licences)
        if threads is not None:
            model.set_threads(threads)
        model.verified, model.numerics = manifest.verified, manifest.numerics
        return model if executables is None else model.keep(executables)
    except (dims.DimError, ArtifactError) as error:
        why = f"{error.what} {error.why or ''}".strip() if isinstance(error, ArtifactError) else str(error)
        raise ArtifactError(
            "The artifact is not valid.", where=where, why=why, fix="Compile the model again."
        ) from None


def _refuse_native(manifest: Manifest, where: str) -> None:
    """Raises UnsupportedError for an artifact that holds machine code, whatever its manifest says of that."""
    code = {name: member.size for name, member in manifest.members.items() if is_binary(name)}
    if code or manifest.native_code:
        raise UnsupportedError(
            "The artifact holds machine code, and is to be loaded without any.",
            where=where,
            why=f"It is for {manifest.target[:80]}, and has {sum(code.values()):,} bytes of code in {len(code)} "
            "members.",
            fix="Compile the model for xla:cpu, whose artifacts hold none; or load it without native=False "
            "(--no-native) if you trust who made it.",
        )


def _signature(manifest: Manifest, where: str) -> Signature:
    for spec in (*manifest.inputs, *manifest.outputs):
        parse_dims(spec.dims)
    return Signature(
        inputs=manifest.inputs,
        outputs=manifest.outputs,
        ranges=ranges_from_json(manifest.symbols, where),
        constraints=constraints_from_json(manifest.constraints, where),
        result=manifest.result,
        arguments=manifest.arguments,
    )


def _texts(artifact: Artifact, programs: set[str], where: str) -> dict[str, str]:
    names = [name for name in artifact.manifest.members if name not in (MANIFEST, WEIGHTS) and not is_binary(name)]
    try:
        texts = {name: str(artifact.member(name), "utf-8") for name in names}
    except UnicodeDecodeError as error:
        raise ArtifactError("A member of the artifact is not text.", where=where, why=str(error)) from None
    for name, text in texts.items():
        if name in programs and _depth(text) > MAX_DEPTH:
            raise ArtifactError("A program of the artifact is nested too deeply.", where=where, why=f"It is {name}.")
    return texts


def _depth(text: str) -> int:
    """How deep the brackets outside of strings and comments are nested."""
    brackets = np.frombuffer(_NO_BRACKETS.sub("", text).encode().translate(None, _OTHERS), np.uint8)
    steps = np.where(np.isin(brackets, np.frombuffer(b"([{<", np.uint8)), np.int8(1), np.int8(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
