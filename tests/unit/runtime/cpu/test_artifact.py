"""Models of machine code as files: what is in one, that it is said, and what becomes of changed ones."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcomp
from gcomp.errors import ArtifactError, GcompError, UnsupportedError
from gcomp.ir.program import Program
from gcomp.lowering.xla import lower
from gcomp.runtime.artifact import open_artifact, write_artifact
from gcomp.runtime.cpu.memory import Pages, address_of
from gcomp.runtime.cpu.variants import VARIANTS, this_machine
from gcomp.runtime.model import Model, manifest_of
from gcomp.testing.mutate import run
from tests.support.mutate import native
from tests.support.mutate.artifacts import Sample
from tests.unit.runtime.cpu.models import (
    WEIGHT,
    plan_in_place,
    plan_with_host_step,
    plan_with_weight,
    rows,
    with_weight,
)

CASES = 700
HERE = this_machine()
IMAGE = f"code.plan.{HERE.replace('+', '.')}.image"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "model.gcomp"
    Model(plan_with_weight(), {"w": WEIGHT}, start=False).save(target)
    return target


def test_an_artifact_holds_all_that_a_call_needs_and_says_so(path: Path) -> None:
    with open_artifact(path, verify=True) as artifact:
        assert artifact.manifest.native_code and artifact.manifest.target == f"cpu:{HERE}"
        assert list(artifact.manifest.members) == [IMAGE, "plan.json", "weights.safetensors"]
    model = gcomp.load(path)
    for _ in range(3):
        np.testing.assert_array_equal(model(rows(3))[0], with_weight(rows(3)))
    assert model.memory(n=4).temporary_bytes == 64 + 4 * 384 and HERE in model.memory(n=4).source
    assert model.flops(n=4) == 4 * 192


def test_weights_are_read_where_they_lie_in_the_file(path: Path) -> None:
    model = gcomp.load(path)
    model(rows(3))
    (held,) = model._executor.sessions({})[0]._weights
    assert address_of(held) == address_of(model.weights["w"]) and not held.flags.owndata


def test_machine_code_is_refused_where_none_is_wanted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pages, "make_code", lambda self: pytest.fail("it was made executable"))
    with pytest.raises(UnsupportedError) as caught:
        gcomp.load(path, native=False)
    assert f"cpu:{HERE}" in str(caught.value) and "machine code" in str(caught.value)
    text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n func.return %x : tensor<3xf32>\n}"
    Model(lower(Program.parse(text)), {}, start=False).save(path)
    gcomp.load(path, native=False)


def told(monkeypatch: pytest.MonkeyPatch, capfd: Any, *arguments: object) -> tuple[int, str]:
    """What the command line says, and its exit code."""
    from gcomp.cli import main

    monkeypatch.setattr(sys, "argv", ["gcomp", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0), " ".join("".join(capfd.readouterr()).split())


def test_the_command_line_refuses_and_shows_machine_code(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    code, text = told(monkeypatch, capfd, "run", path, "--random", "--no-native")
    assert code == 1 and "machine code" in text and "Traceback" not in text
    code, text = told(monkeypatch, capfd, "run", path, "--random")
    assert code == 0


def test_what_an_artifact_says_of_its_code_must_be_true(path: Path) -> None:
    true = manifest_of(Model(plan_with_weight(), {"w": WEIGHT}, start=False))
    write_artifact(path, dataclasses.replace(true, native_code=False), members_of(), {"w": WEIGHT})
    with pytest.raises(ArtifactError, match="its machine code"):
        gcomp.load(path)


# ---- changed files ----


def members_of() -> dict[str, bytes]:
    plan = plan_with_weight()
    return {
        **{name: text.encode() for name, text in plan.texts.items()},
        **{name: bytes(data) for name, data in plan.binaries.items()},
    }


def edit(old: str, new: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        text = members["plan.json"].decode()
        changed = re.sub(old, new, text)
        assert changed != text
        members["plan.json"] = changed.encode()

    return change


def of_images(change: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], None]:
    def changed(members: dict[str, bytes]) -> None:
        members |= {name: change(data) for name, data in members.items() if name.endswith(".image")}

    return changed


def renamed(members: dict[str, bytes]) -> None:
    (name,) = [name for name in members if name.endswith(".image")]
    members["other.image"] = members.pop(name)


FOREIGN = next(name for name, variant in VARIANTS.items() if variant.machine != VARIANTS[HERE].machine)


@pytest.mark.parametrize(
    ("change", "target", "why"),
    [
        (of_images(lambda code: code[:1] + bytes([code[1] ^ 4]) + code[2:]), None, "does not match its SHA-256"),
        (of_images(lambda code: code[:-1]), None, "does not match its SHA-256"),
        (of_images(lambda code: code[:2]), None, "of the 2 of its code"),
        (of_images(lambda code: b""), None, "of the 0 of its code"),
        (renamed, None, "has no code"),
        (edit('"entry":[0-9]+', '"entry":9999999'), None, "the entry is at byte 9999999"),
        (edit('"start":[0-9]+', '"start":-1'), None, "starts threads is at byte -1"),
        (edit('"sha256":"..', '"sha256":"zz'), None, "does not match its SHA-256"),
        (edit('"arena":"384', '"arena":"38'), None, "of its arena"),
        (edit('{"at":64,', '{"at":128,'), None, "of its arena"),
        (edit('"symbols":..n"', '"symbols":["m"'), None, "'m' is not known"),
        (edit(f'"{re.escape(HERE)}"', f'"{FOREIGN}"'), None, "It is for"),
        (edit(f'"{re.escape(HERE)}"', f'"{FOREIGN}"'), f"cpu:{FOREIGN}", f"it needs {VARIANTS[FOREIGN].machine}"),
        (lambda members: members.pop("plan.json"), None, "no program text"),
        (lambda members: members.update({"plan.json": b"[" * 100_000}), None, "nested"),
        (lambda members: None, "cpu:z80", "does not run models"),
        (lambda members: None, "xla:cpu", ""),
    ],
)
def test_artifacts_that_were_made_up_are_refused_before_their_code_is_executable(
    change: Callable[[dict[str, bytes]], object], target: str | None, why: str, path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(Pages, "make_code", lambda self: pytest.fail("it was made executable"))
    manifest, members = manifest_of(Model(plan_with_weight(), {"w": WEIGHT}, start=False)), members_of()
    change(members)
    if target is not None:
        manifest = dataclasses.replace(manifest, target=target)
    write_artifact(path, manifest, members, {"w": WEIGHT})
    with pytest.raises(GcompError) as caught:
        gcomp.load(path).prepare(n=2)
    assert why in str(caught.value)


def test_every_changed_byte_of_the_code_is_found(path: Path) -> None:
    data = path.read_bytes()
    with open_artifact(path) as artifact:
        code = bytes(artifact.member(IMAGE))
    start = data.index(code)
    for offset in np.random.default_rng(0).integers(0, len(code), 20):
        changed = bytearray(data)
        changed[start + int(offset)] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(ArtifactError):
            gcomp.load(path)


def samples(folder: Path) -> list[Sample]:
    """Artifacts to mutate."""
    found: list[Sample] = []
    for plan in (plan_with_weight(), plan_in_place(), plan_with_host_step()):
        Model(plan, {"w": WEIGHT} if plan.weights else {}, start=False).save(folder / "sample.gcomp")
        found.append(Sample.of((folder / "sample.gcomp").read_bytes()))
    return found


def call(model: Model) -> None:
    """A call of a sample gives what it should."""
    x = rows(2)
    results = model(*(x.copy() for _ in model.inputs))
    if len(model.inputs) == 2:
        np.testing.assert_array_equal(results[0], x + x)
    elif len(results) == 1:
        np.testing.assert_array_equal(results[0], with_weight(x))


def test_mutants_are_refused_before_their_code_is_executable(tmp_path: Path) -> None:
    """Many more: tools/fuzz_inputs.py --kind native --count 20000."""
    originals = samples(tmp_path)
    tally = run(native.cases(originals, CASES), native.reader(tmp_path / "mutant.gcomp", originals, call))
    sys.stdout.write(f"{tally.table()}\n")
    assert not tally.failures, str(tally)
    assert {"ArtifactError", "neutral", "ready"} <= tally.by_outcome().keys()
