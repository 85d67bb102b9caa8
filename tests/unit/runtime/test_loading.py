"""Models in files: saved and loaded without loss, byte for byte the same, and refused when damaged."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcomp.errors import ArtifactError, GcompError, InputError, UsageError
from gcomp.runtime.artifact import MANIFEST, WEIGHTS, open_artifact, write_artifact
from gcomp.runtime.loading import load
from gcomp.runtime.manifest import Manifest
from gcomp.runtime.model import Model, manifest_of
from tests.unit.runtime.models import CONV_NET, TWO_SYMBOLS, UPDATE, conv_net, conv_weights, images, make_model

STATIC = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.gcomp"
    make_model(CONV_NET, conv_weights()).save(path)
    return path


@pytest.mark.parametrize("verify", ["lazy", "full"])
def test_a_loaded_model_is_the_saved_one(saved: Path, verify: Any) -> None:
    built, loaded = make_model(CONV_NET, conv_weights()), load(saved, verify)
    assert loaded.plan == built.plan
    assert repr(loaded) == repr(built)
    x = images(5)
    assert np.array_equal(loaded(x)[0], conv_net(x, conv_weights()))
    assert loaded.text(batch=5) == built.text(batch=5)
    with pytest.raises(InputError):
        loaded(images(65))


@pytest.mark.parametrize("text", [TWO_SYMBOLS, UPDATE, STATIC])
def test_plans_survive(text: str, tmp_path: Path) -> None:
    built = make_model(text)
    built.save(tmp_path / "m")
    assert load(tmp_path / "m").plan == built.plan


def test_structure_producers_and_licences_survive(tmp_path: Path) -> None:
    plan = make_model(STATIC).plan
    plan = dataclasses.replace(plan, signature=dataclasses.replace(plan.signature, result={"list": [0]}))
    Model(plan, {}, producers={"onnx": "1.20"}, licences=("MIT",)).save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert isinstance(loaded(np.zeros(4, np.float32)), list)
    assert loaded.producers == {"onnx": "1.20"} and loaded.licences == ("MIT",)


def test_saving_twice_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.gcomp"
    model = make_model(CONV_NET, conv_weights())
    model(images(3))
    model.save(again)
    load(saved).save(tmp_path / "third.gcomp")
    assert again.read_bytes() == saved.read_bytes() == (tmp_path / "third.gcomp").read_bytes()


def test_the_bytes_do_not_depend_on_the_hash_seed(saved: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from tests.unit.runtime.models import *; make_model(CONV_NET, conv_weights()).save(sys.argv[1])"
    )
    for seed in ("1", "2"):
        path = tmp_path / seed
        env = {"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "PYTHONPATH": "."}
        subprocess.run([sys.executable, "-c", script, path], check=True, env=env)
        assert path.read_bytes() == saved.read_bytes()


BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        parts = tuple(name.split("."))
        blocked = ("xdsl", "onnx", "onnx_ir", "torch", "triton", "safetensors")
        inner = ("ir", "frontends", "lowering", "passes", "analysis", "driver", "testing", "cli", "reference")
        arrays = parts[:3] in (("gcomp", "reference"), ("gcomp", "reference", "numpy"))
        if parts[0] in blocked or (parts[0] == "gcomp" and parts[1:2] and parts[1] in inner and not arrays):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
import numpy as np
from gcomp.runtime.loading import load
model = load(sys.argv[1], "full")
print(model(np.load(sys.argv[2]))[0].tobytes().hex())
"""


def test_loading_and_running_needs_no_compiler(saved: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images(4))
    command = [sys.executable, "-c", BLOCKER, saved, tmp_path / "x.npy"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert bytes.fromhex(done.stdout.strip()) == conv_net(images(4), conv_weights()).tobytes()


@pytest.mark.parametrize("member", ["main.mlir", MANIFEST, WEIGHTS])
def test_a_damaged_member_is_noticed(saved: Path, member: str) -> None:
    with open_artifact(saved) as artifact:
        place = saved.read_bytes().find(bytes(artifact.member(member)))
        size = len(artifact.member(member))
    data = bytearray(saved.read_bytes())
    data[place + size - 5] ^= 1
    saved.write_bytes(data)
    with pytest.raises(ArtifactError):
        load(saved, "full")
    with pytest.raises(ArtifactError):
        load(saved)(images(1))


def _rewrite(saved: Path, change: Callable[[Manifest], Manifest], texts: dict[str, bytes] | None = None) -> None:
    """Write the artifact anew, well-formed, with another manifest."""
    model = make_model(CONV_NET, conv_weights())
    members = {name: text.encode() for name, text in model.plan.texts.items()}
    write_artifact(saved, change(manifest_of(model)), members | (texts or {}), dict(model.weights))


def _segment(manifest: Manifest, **changes: Any) -> Manifest:
    first, last = manifest.segments
    return dataclasses.replace(manifest, segments=({**first, **changes}, last))


CONTRADICTIONS: dict[str, tuple[Callable[[Manifest], Manifest], dict[str, bytes]]] = {
    "no return": (lambda m: dataclasses.replace(m, segments=m.segments[:1]), {}),
    "no segments": (lambda m: dataclasses.replace(m, segments=()), {}),
    "unknown kind": (lambda m: _segment(m, kind="shell"), {}),
    "unknown field": (lambda m: _segment(m, extra=1), {}),
    "unknown value": (lambda m: _segment(m, inputs=[7]), {}),
    "unknown text": (lambda m: _segment(m, text="other.mlir"), {}),
    "unknown weight": (lambda m: _segment(m, weights=["w"]), {}),
    "unknown option": (lambda m: _segment(m, options={"always": {"xla_dump_to": "/tmp"}}), {}),
    "unknown section": (lambda m: _segment(m, options={"sometimes": {}}), {}),
    "option of another type": (lambda m: _segment(m, options={"always": {"xla_cpu_prefer_vector_width": "1"}}), {}),
    "bad alias": (lambda m: _segment(m, aliases=[[0, 9]]), {}),
    "bad structure": (lambda m: dataclasses.replace(m, result={"tuple": [0, 5]}), {}),
    "result left out": (lambda m: dataclasses.replace(m, result={"tuple": [0]}), {}),
    "bad constraint": (lambda m: dataclasses.replace(m, constraints=("{}",)), {}),
    "unbound symbol": (lambda m: dataclasses.replace(m, inputs=(dataclasses.replace(m.inputs[0], dims=("8",)),)), {}),
    "other target": (lambda m: dataclasses.replace(m, target="abacus"), {}),
    "callback": (
        lambda m: m,
        {"main.mlir": b'"stablehlo.custom_call"() <{call_target_name = "xla_python_cpu_callback"}>'},
    ),
    "not text": (lambda m: m, {"main.mlir": b"\xff"}),
    "bad hole": (lambda m: m, {"main.mlir": b"{{1/2}}"}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_refused_before_anything_runs(saved: Path, name: str) -> None:
    change, texts = CONTRADICTIONS[name]
    _rewrite(saved, change, texts)
    with pytest.raises(GcompError) as error:
        load(saved)
    assert str(error.value)


def test_a_program_of_other_types_than_its_signature_is_refused(saved: Path) -> None:
    # XLA compares only how many bytes an argument has.
    other = """module { func.func public @main(%a: tensor<{{batch}}x64xf32>, %b: tensor<3x3x1x4xf32>, %c: tensor<4xf32>,
        %d: tensor<64x10xf32>) -> (tensor<{{batch}}x10xf32>, tensor<i64>) {
      %r = stablehlo.dot_general %a, %d, contracting_dims = [1] x [0]
        : (tensor<{{batch}}x64xf32>, tensor<64x10xf32>) -> tensor<{{batch}}x10xf32>
      %n = stablehlo.constant dense<0> : tensor<i64>
      return %r, %n : tensor<{{batch}}x10xf32>, tensor<i64>
    } }"""
    _rewrite(saved, lambda m: m, {"main.mlir": other.encode()})
    with pytest.raises(ArtifactError, match="not what the plan says"):
        load(saved)(images(2))


def test_the_way_to_verify_has_two_names(saved: Path) -> None:
    with pytest.raises(UsageError):
        load(saved, "maybe")  # type: ignore[arg-type]


def test_a_static_model_states_its_memory(tmp_path: Path) -> None:
    model = make_model(STATIC)
    model.save(tmp_path / "m")
    with open_artifact(tmp_path / "m") as artifact:
        assert artifact.manifest.memory.bytes == model.memory().total_bytes
        assert "XLA" in artifact.manifest.memory.source and not artifact.manifest.native_code


def test_weights_are_read_in_place(saved: Path) -> None:
    model = load(saved)
    model(images(1))
    (segment,) = model._executor.segments
    for name, placed in zip(segment.step.weights, segment._weights, strict=True):
        assert placed.unsafe_buffer_pointer() == model.weights[name].ctypes.data
