"""Models for GPUs as files: what is in one, the same bytes each time, and what becomes of changed ones."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp import dims
from gcomp.errors import ArtifactError, GcompError, UnsupportedError
from gcomp.lowering.tiles.drafts import Part
from gcomp.lowering.triton.package import package
from gcomp.runtime.artifact import open_artifact, write_artifact
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.model import Model, manifest_of
from gcomp.runtime.plan import Value
from tests.unit.runtime.cuda.models import (
    BYTES,
    ROWS,
    WEIGHT,
    draft_of_two,
    plan_of_two,
    recorder,
    rows,
    signature,
    two,
)
from tests.unit.runtime.cuda.recorder import Recorder

ROOT = Path(__file__).parents[4]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "two.gcomp"
    Model(plan_of_two("triton:sm_90,sm_80"), {"w": WEIGHT}).save(target)
    return target


def test_an_artifact_holds_all_that_a_call_needs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_artifact(path, verify=True) as artifact:
        names = list(artifact.manifest.members)
        kinds = sorted((name.partition(".")[0], name.rpartition(".")[2]) for name in names)
        assert kinds == [
            ("add", "cubin"), ("add", "cubin"), ("add", "py"), ("plan", "json"),
            ("softmax", "cubin"), ("softmax", "cubin"), ("softmax", "py"), ("weights", "safetensors"),
        ]  # fmt: skip
        assert artifact.manifest.native_code and artifact.manifest.target == "triton:sm_90,sm_80"
        source = next(name for name in names if name.startswith("add") and name.endswith(".py"))
        assert "def add(x, y, o, n):" in str(artifact.member(source), "utf-8")
    gpu = recorder()
    monkeypatch.setattr("gcomp.runtime.cuda.executor.driver", lambda: gpu)
    model = gcomp.load(path)
    for _ in range(3):
        np.testing.assert_allclose(model(rows(3))[0], two(rows(3)), rtol=1e-5)
    assert gpu.count("replay") == 2
    assert model.memory(n=4).total_bytes == 1536 + 3072 + 1536 + 1792 and "sm_90" in model.memory(n=4).source
    assert model.flops(n=4) == 2304 and model.cost(n=4)["bytes accessed"] == 7680
    assert json.loads(model.text(n=4)).keys() == {"sm_80", "sm_90"}
    assert model.segments == ("device plan.json (1 weights) -> f32[n, 96]",)


_MAKE = """
import sys
from gcomp.runtime.cuda.executor import CudaExecutor
from gcomp.runtime.model import Model
from gcomp.runtime.plan import Value
from tests.unit.runtime.cuda.recorder import Recorder
from tests.unit.runtime.cuda.models import BYTES, ROWS, WEIGHT, plan_of_two
Model(plan_of_two("triton:sm_90,sm_80"), {"w": WEIGHT}).save(sys.argv[1])
"""


def test_the_same_model_has_the_same_bytes(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "123",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "GCOMP_CACHE_DIR": str(other / "cache"),
    }
    command = [sys.executable, "-c", _MAKE, str(other / "b.gcomp")]
    done = subprocess.run(command, cwd=other, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (other / "b.gcomp").read_bytes() == path.read_bytes()


_RUN = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "jax", "jaxlib", "triton", "xdsl", "onnx", "cuda", "cupy"):
            raise ImportError(f"{name} is not to be imported")

sys.meta_path.insert(0, Refuse())
import numpy as np
import gcomp
import gcomp.runtime.cuda.executor as executor
from tests.unit.runtime.cuda.recorder import BODIES, Recorder
gpu = Recorder(BODIES)
executor.driver = lambda: gpu
model = gcomp.load(sys.argv[1], verify="full")
x = np.load(sys.argv[2])
for _ in range(2):
    (y,) = model(x)
np.save(sys.argv[3], y)
assert gpu.count("replay") == 1
"""


def test_an_artifact_runs_without_any_framework(path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows(4))
    command = [sys.executable, "-c", _RUN, str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), two(rows(4)), rtol=1e-5)


def test_the_command_line_says_that_there_is_no_gpu(path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    from gcomp.cli import main
    from gcomp.runtime.cuda import driver

    monkeypatch.setattr(driver, "LIBRARY", "libcuda-that-is-not-there.so.1")
    driver.driver.cache_clear()
    monkeypatch.setattr(sys, "argv", ["gcomp", "run", str(path), "--random"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = " ".join("".join(capfd.readouterr()).split())
    assert ended.value.code == 1
    assert "no NVIDIA driver on this machine" in told and "Traceback" not in told


# ---- changed files ----


def test_every_changed_byte_of_a_member_is_found(path: Path) -> None:
    data = path.read_bytes()
    with open_artifact(path) as artifact:
        spans = [bytes(artifact.member(name)) for name in artifact.manifest.members]
    rng = np.random.default_rng(0)
    for content in spans:
        start = data.index(content)
        for offset in rng.integers(0, len(content), 8):
            changed = bytearray(data)
            changed[start + int(offset)] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(bytes(changed))
            with pytest.raises(ArtifactError):
                gcomp.load(path, verify="full")


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object], target: str | None = None) -> Path:
    """The artifact with other members, whose hashes are as they should be."""
    model = Model(plan_of_two("triton:sm_90,sm_80"), {"w": WEIGHT})
    members = {name: text.encode() for name, text in model.plan.texts.items()}
    members |= {name: bytes(data) for name, data in model.plan.binaries.items()}
    change(members)
    manifest = manifest_of(model)
    if target is not None:
        manifest = dataclasses.replace(manifest, target=target)
    write_artifact(path, manifest, members, {"w": WEIGHT})
    return path


def swap(members: dict[str, bytes]) -> None:
    """Each binary in another's place."""
    names = [name for name in members if name.endswith(".cubin")]
    contents = [members[name] for name in names]
    members |= dict(zip(names, contents[1:] + contents[:1], strict=True))


def edit(old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        assert old in members["plan.json"]
        members["plan.json"] = members["plan.json"].replace(old, new)

    return change


def truncate(members: dict[str, bytes]) -> None:
    for name in members:
        if name.endswith(".cubin"):
            members[name] = members[name][:-100]


@pytest.mark.parametrize(
    ("change", "target", "why"),
    [
        (swap, None, "its kernel is"),
        (truncate, None, "it ends before"),
        (edit(b'"arena":"384*n + 256"', b'"arena":"x + 256"'), None, "'x' is not known"),
        (edit(b'"kernel":0', b'"kernel":7'), None, "kernel that does not exist"),
        (edit(b'"warps":4', b'"warps":8'), None, "128 threads"),
        (edit(b'"sm_80"', b'"sm_86"'), None, "It is for"),
        (edit(b'{"sm_80"', b'{"{{2*n}}":1,"sm_80"'), None, "not valid"),
        (lambda members: members.pop("plan.json"), None, "no program text"),
        (lambda members: members.update({"plan.json": b"[" * 100_000}), None, "nested"),
        (lambda members: members.update({"plan.json": b"\xff"}), None, "not text"),
        (lambda members: [members.pop(n) for n in list(members) if n.startswith("add")], None, "has no binary"),
        (lambda members: None, "triton:sm_90", "It is for"),
        (lambda members: None, "triton", "does not run models"),
        (lambda members: None, "xla:cpu", ""),
        (lambda members: None, "rocm:gfx942", "does not run models"),
    ],
)
def test_artifacts_that_were_made_up_are_refused(
    change: Callable[[dict[str, bytes]], object], target: str | None, why: str, path: Path
) -> None:
    rewritten(path, change, target)
    with pytest.raises(GcompError) as caught:
        model = gcomp.load(path)
        model.prepare(n=2)
    assert why in str(caught.value)


def test_an_offset_outside_of_the_arena_is_found_when_sizes_are_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = recorder()
    monkeypatch.setattr("gcomp.runtime.cuda.executor.driver", lambda: gpu)
    rewritten(path, edit(b'{"at":256,', b'{"at":512,'))
    with pytest.raises(ArtifactError) as caught:
        gcomp.load(path)(rows(3))
    assert "of its arena" in str(caught.value) and str(path) in str(caught.value)
    assert gpu.count("launch") == 0


def test_other_makers_are_not_run_yet() -> None:
    parts = [Part((0,), ("w",), (), {"gfx942": draft_of_two()})]
    with pytest.raises(UnsupportedError, match="gfx942"):
        package("triton:gfx942", signature(), parts, (1,), {})


def test_digests_name_the_members() -> None:
    plan = plan_of_two()
    binaries: Mapping[str, bytes | memoryview] = plan.binaries
    for name, content in {**binaries, **{n: t.encode() for n, t in plan.texts.items() if n.endswith(".py")}}.items():
        assert name.split(".")[1] == hashlib.sha256(content).hexdigest()[:16]


# ---- plans that were changed at random ----


class Bounded(Recorder):
    """A GPU whose kernels do nothing, and are given nothing but its memory."""

    def launch(
        self, function: int, grid: Any, threads: int, shared: int, ctas: int, arguments: Any, stream: int
    ) -> None:
        assert all(size >= 1 for size in grid) and 1 <= threads <= 1024
        for value, size in arguments:
            if size == 8 and value:
                self._check(value, 1)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        self._check(target, size)
        self._check(source, size)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in nodes(item, (*path, key)))]


_VALUES = [
    0,
    1,
    -1,
    3,
    255,
    1 << 40,
    "",
    "0",
    "n",
    "384*n",
    "9999*n",
    "x",
    "1",
    "-n",
    True,
    None,
    1.5,
    [],
    {},
    ["1"],
    [0],
]


def mutated(rows: Any, rng: random.Random) -> Any:
    """A JSON value with one value in it replaced, left out or doubled."""
    path = rng.choice(nodes(rows)[1:])
    *way, last = path
    holder = rows
    for key in way:
        holder = holder[key]
    kind = rng.randrange(4)
    if kind == 0:
        del holder[last]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[last]))
    elif kind == 2:
        donor = rows
        for key in rng.choice(nodes(rows)):
            donor = donor[key]
        holder[last] = copy.deepcopy(donor)
    else:
        holder[last] = rng.choice(_VALUES)
    return rows


def test_a_plan_that_was_changed_at_random_is_refused_or_stays_in_its_memory() -> None:
    draft = draft_of_two()
    t, y = draft.buffer("arena", 256, BYTES), draft.buffer("output", 0, BYTES)
    with draft.block() as body:
        draft.fill(t, 0)
        draft.copy(t, y)
    draft.loop(dims.symbol("n"), body)
    draft.case(draft.buffer("arena", 0, 1), [body, []])
    part = Part((0,), ("w",), (Value("f32", ROWS),), {"sm_90": draft})
    plan = package("triton:sm_90", signature(), [part], (1,), {"w": Value("f32", ("8", "96"))})
    rows_ = json.loads(plan.texts["plan.json"])
    rng = random.Random(7)
    refused = 0
    for _ in range(600):
        changed = mutated(copy.deepcopy(rows_), rng)
        text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        gpu = Bounded({})
        try:
            whole = dataclasses.replace(plan, texts={**plan.texts, "plan.json": text}, origin="a.gcomp")
            run = CudaExecutor(whole, {"w": WEIGHT}, lambda gpu=gpu: gpu)
            for _ in range(2):
                run([rows(3)])
            run.memory({"n": 3})
            run.cost({"n": 3})
        except GcompError:
            refused += 1
    assert 300 < refused < 600
