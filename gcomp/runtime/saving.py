"""Writing a model as an artifact."""

from __future__ import annotations

import os

from gcomp.runtime.artifact import write_artifact
from gcomp.runtime.manifest import FORMAT_VERSION, Manifest, MemorySpec
from gcomp.runtime.model import Model
from gcomp.runtime.signature import constraints_to_json, symbols_to_json
from gcomp.runtime.weights import describe_weight
from gcomp.version import __version__


def manifest_of(model: Model) -> Manifest:
    """The manifest of a model, its table of members still empty."""
    plan, signature = model.plan, model.signature
    first = len(signature.inputs)
    memory = model.default_memory
    return Manifest(
        format_version=FORMAT_VERSION,
        gcomp_version=__version__,
        target=plan.target,
        native_code=bool(plan.binaries),
        producers=dict(sorted(model.producers.items())),
        members={},
        inputs=signature.inputs,
        outputs=signature.outputs,
        symbols=symbols_to_json(signature.ranges, signature.symbols),
        constraints=constraints_to_json(signature.constraints),
        result=signature.result,
        arguments=signature.arguments,
        weights=tuple(describe_weight(name, model.weights[name], first + i) for i, name in enumerate(plan.weights)),
        memory=MemorySpec(
            memory.total_bytes if memory else None, None, memory.source if memory else "XLA, when loaded"
        ),
        licences=model.licences,
        segments=plan.to_json(),
    )


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to one file. Raises ArtifactError."""
    members = {**{name: text.encode() for name, text in model.plan.texts.items()}, **model.plan.binaries}
    write_artifact(path, manifest_of(model), members, {name: model.weights[name] for name in model.plan.weights})
