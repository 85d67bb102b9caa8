"""Writing a model as an artifact."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from gcomp.runtime.artifact import write_artifact
from gcomp.runtime.manifest import FORMAT_VERSION, Manifest, MemorySpec, WeightSpec, initial_name
from gcomp.runtime.model import Model
from gcomp.runtime.signature import constraints_to_json, symbols_to_json
from gcomp.runtime.weights import describe_weight
from gcomp.version import __version__


def manifest_of(model: Model) -> Manifest:
    """The manifest of a model, its table of members still empty."""
    plan, signature = model.plan, model.plan.signature
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
        weights=_weights(model),
        memory=MemorySpec(
            memory.total_bytes if memory else None, None, memory.source if memory else "XLA, when loaded"
        ),
        licences=model.licences,
        segments=plan.to_json(),
        verified=model.verified,
    )


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model to one file. Raises ArtifactError."""
    members = {**{name: text.encode() for name, text in model.plan.texts.items()}, **model.plan.binaries}
    manifest = manifest_of(model)
    write_artifact(path, manifest, members, {spec.name: model.weights[spec.name] for spec in manifest.weights})


def _weights(model: Model) -> tuple[WeightSpec, ...]:
    """The table of weights: those of the program, behind its inputs, and the first values of the state."""
    inputs = model.plan.signature.inputs
    places = {name: len(inputs) + i for i, name in enumerate(model.plan.weights)}
    states = [(initial_name(spec.name), i) for i, spec in enumerate(inputs) if spec.state is not None]
    places |= {name: i for name, i in states if name in model.weights}

    def row(name: str) -> WeightSpec:
        # A state is read once, into the device: as it is, without a second copy.
        return describe_weight(name, model.weights[name], places[name], narrow=places[name] >= len(inputs))

    with ThreadPoolExecutor() as pool:  # Hashing lets go of the interpreter.
        return tuple(pool.map(row, places))
