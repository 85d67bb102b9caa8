"""Broken files: models and texts that mutators changed. Each is read, or refused with one whole error.

A whole error is no InternalError, and says where or why. What an ONNX model was imported as must be a valid program,
and what a text was read as must be printed so that it reads as the same. `gcomp.testing.mutate` has the mutators.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from gcomp.errors import VerificationError
from gcomp.ir.program import Program
from gcomp.sources import import_model
from gcomp.testing.fuzz.door import Undefined
from gcomp.testing.fuzz.imported import Origin, Sample, is_installed, suite
from gcomp.testing.generate.program import seeded_program
from gcomp.testing.mutate import models, nodes, texts

_POOLED = 200
"""From so many models are the attributes that mutators give to others."""
_TEXT_SIZE = 8
_VALUES: Sequence[Any] = (None, True, 0, -1, 1 << 40, 1.5, "", "x", "s0", "../x", [], {}, [1], {"as_int": 7}, [[]])


class BrokenFiles(Origin):
    """ONNX models, IR texts, and files of torch."""

    name: ClassVar[str] = "files"

    def sample(self, number: int, steps: int | None = None) -> Sample:
        kind, make = _KINDS[number % len(_KINDS)]
        about, load = make(Random(f"file {number}"), number)
        return Sample(about, f"{kind} {number} ({' by '.join(about)})", load, (), lambda: [], is_broken=True)

    def topic(self, number: int) -> str:
        kind = _KINDS[number % len(_KINDS)][0]
        return f"{kind} {_model(number).operator}" if kind in ("ONNX node", "ONNX file") else kind


Made = tuple[tuple[str, ...], Callable[[], Program]]
"""What a sample is about, the mutators last, and how it is read."""


# ---- ONNX -----------------------------------------------------------------------------------------------------------


def _model(number: int) -> Any:
    from gcomp.testing.foreign.onnx_nodes import model_of

    return model_of(number)


@cache
def _pool() -> nodes.Pool:
    return nodes.Pool.of(_model(number).proto for number in range(_POOLED))


def _node(chance: Random, number: int) -> Made:
    """A model of one node that mostly stays a model, and often contradicts itself."""
    model = _model(number)
    changed, names = nodes.mutate(chance, model.proto, _pool())
    return (model.operator, names), partial(
        _import_onnx, changed.SerializeToString() if chance.random() < 0.5 else changed
    )


@cache
def _pool_of_suite() -> nodes.Pool:
    return nodes.Pool.of(case.model for case in suite())


def _case(chance: Random, number: int) -> Made:
    """A node case of ONNX's suite, where inputs that hold axes and the like are constants; it mostly stays a model."""
    from gcomp.testing.foreign.onnx_constants import fix_inputs, raw

    case = suite()[number % len(suite())]
    model: Any = type(case.model)()
    model.CopyFrom(case.model)
    raw(model)
    fix_inputs(chance, model, dict(zip((v.name for v in model.graph.input), case.data_sets[0][0], strict=False)))
    changed, names = nodes.mutate(chance, model, _pool_of_suite())
    return (case.name, *names.split("+")), partial(_import_onnx, changed)


def _protobuf(chance: Random, number: int) -> Made:
    """A model whose protobuf, or whose bytes, are changed anywhere."""
    model = _model(number)
    changed, names = models.mutate(chance, model.proto)
    return (model.operator, names), partial(_import_onnx, changed)


def _import_onnx(source: Any) -> Program:
    try:
        program = import_model(source)
        program.verify()
    except VerificationError as error:
        raise AssertionError(f"what was imported is not valid: {error}") from error
    return program


# ---- texts ----------------------------------------------------------------------------------------------------------


def _text(chance: Random, number: int) -> Made:
    """The text of a program of random ops."""
    program = seeded_program(number, _TEXT_SIZE)
    changed, names = texts.mutate(chance, program.text())
    return ("StableHLO", names), partial(_read, changed)


def _read(text: str) -> Program:
    program = import_model(f"{text}\n")
    printed = program.text()
    if Program.parse(printed).text() != printed:
        raise AssertionError("what is printed of the program reads as another one")
    return program


# ---- torch ----------------------------------------------------------------------------------------------------------


def _torch(chance: Random, number: int) -> Made:
    """A file of `torch.export.save`: its bytes, its members, or what its JSON says."""
    if not is_installed("torch"):
        raise Undefined("torch is not installed")
    from gcomp.testing.foreign.saved import torch_file

    data = torch_file()
    change = chance.choice((_change_bytes, *[_change_json] * 4, _change_members))
    return ("torch.export", change.__name__.strip("_")), partial(_import_file, change(chance, data))


def _import_file(data: bytes) -> Program:
    with tempfile.TemporaryDirectory(prefix="gcomp-fuzz-") as folder:
        path = Path(folder) / "model.pt2"
        path.write_bytes(data)
        return import_model(path)


def _change_bytes(chance: Random, data: bytes) -> bytes:
    return chance.choice((models.flip_bytes, models.truncate_bytes))(chance, data)


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _zipped(members: Sequence[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return target.getvalue()


def _change_members(chance: Random, data: bytes) -> bytes:
    """Leave a member out, rename it, cut it, or compress all."""
    members = _members(data)
    place = chance.randrange(len(members))
    name, content = members[place]
    match chance.randrange(4):
        case 0:
            del members[place]
        case 1:
            members[place] = f"{name}x", content
        case 2:
            members[place] = name, content[: len(content) // 2]
        case _:
            return _zipped(members, zipfile.ZIP_DEFLATED)
    return _zipped(members)


def _change_json(chance: Random, data: bytes) -> bytes:
    """Change a value in a JSON member: a key goes, a number becomes a list, one part is where another was."""
    members = _members(data)
    place = chance.choice([i for i, (_, content) in enumerate(members) if content[:1] in (b"{", b"[")])
    name, content = members[place]
    whole = [json.loads(content)]
    for _ in range(chance.choice((1, 1, 1, 2))):
        _, *parts = [(box, key) for box in _boxes(whole) for key in _keys(box)]
        if not parts:
            break
        box, key = chance.choice(parts)
        if chance.random() < 0.25:
            del box[key]
        elif chance.random() < 0.4:
            other, there = chance.choice(parts)
            box[key] = json.loads(json.dumps(other[there]))
        else:
            box[key] = chance.choice(_VALUES)
    members[place] = name, json.dumps(whole[0]).encode()
    return _zipped(members)


def _boxes(value: Any) -> list[Any]:
    """The lists and objects of a value, itself first."""
    found = [value]
    for box in found:
        found += [box[key] for key in _keys(box) if isinstance(box[key], list | dict)]
    return found


def _keys(box: Any) -> Sequence[Any]:
    return [*box] if isinstance(box, dict) else range(len(box))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


_MODELS: Sequence[tuple[str, Callable[[Random, int], Made]]] = (
    ("ONNX node", _node), ("ONNX case", _case), ("ONNX file", _protobuf), ("ONNX case", _case), ("IR text", _text),
)  # fmt: skip
_KINDS = (*_MODELS, *_MODELS, *_MODELS, ("torch file", _torch))
"""What is broken, by turns."""

__all__ = ["BrokenFiles"]
