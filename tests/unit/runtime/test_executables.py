"""The cache of executables on disk: a program is compiled once, and what decides its code is in the key."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import gcomp
from gcomp.runtime.folders import CACHE
from gcomp.runtime.xla import cache
from gcomp.runtime.xla.cache import EXECUTABLES
from gcomp.runtime.xla.client import Client
from gcomp.runtime.xla.options import choose, thread_count
from tests.unit.runtime.models import CONV_NET, conv_net, conv_weights, images, make_model

LIBRARY = """
func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<2xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
    : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = stablehlo.cholesky %1, lower = true : tensor<3x3xf32>
  %3 = stablehlo.slice %x [0:1, 0:2] : (tensor<3x3xf32>) -> tensor<1x2xf32>
  %4 = stablehlo.reshape %3 : (tensor<1x2xf32>) -> tensor<2xf32>
  gcomp.print "x: {shape} mean {mean:.3f}" %4 : tensor<2xf32>
  return %2, %4 : tensor<3x3xf32>, tensor<2xf32>
}"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the executables."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "executables"


def compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compiler fail from now on."""

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Client, "compile", refuse)


def test_executables_are_kept_and_taken(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = images(2)
    first = make_model(CONV_NET, conv_weights())(x)[0]
    (entry,) = kept.iterdir()
    content = entry.read_bytes()
    compile_nothing(monkeypatch)
    model = make_model(CONV_NET, conv_weights())
    assert np.array_equal(model(x)[0], first) and np.array_equal(first, conv_net(x, conv_weights()))
    assert model.memory(batch=2).total_bytes > 0
    assert entry.read_bytes() == content
    with pytest.raises(AssertionError, match="again"):
        model(images(3))


def test_library_calls_and_prints_are_found_again(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    expected = gcomp.compile(LIBRARY, target="xla:cpu")(x)
    printed = capfd.readouterr().out
    compile_nothing(monkeypatch)
    found = gcomp.compile(LIBRARY, target="xla:cpu")(x)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert printed and capfd.readouterr().out == printed


def test_what_cannot_be_read_is_compiled_again(kept: Path) -> None:
    x = images(1)
    make_model(CONV_NET, conv_weights())(x)
    (entry,) = kept.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(b"")
    assert np.array_equal(make_model(CONV_NET, conv_weights())(x)[0], conv_net(x, conv_weights()))
    # What is whole may be no executable all the same: of another XLA, say.
    EXECUTABLES.store(entry.name, b"no executable")
    assert np.array_equal(make_model(CONV_NET, conv_weights())(x)[0], conv_net(x, conv_weights()))
    assert len(entry.read_bytes()) == len(whole)


def test_all_that_decides_the_code_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(text: str = "text", **options: str | int) -> str:
        return cache._key(client, text, options)

    client = Client("cpu")
    found = {key(), key("other"), key(a=1), key(a="1"), key(b=1)}
    changes = {"PJRT_NPROC": str(thread_count() + 1), "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}
    for name, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setitem(os.environ, name, value)
            found.add(key())
    with monkeypatch.context() as patch:
        patch.setattr(client, "version", "another jaxlib")
        found.add(key())
    with monkeypatch.context() as patch:
        patch.setattr("gcomp.runtime.xla.client._processor", lambda: "another processor")
        found.add(key())
    assert len(found) == 9 and key() in found


def test_options_follow_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"always": {"a": 1, "b": 1}, "one_thread": {"b": 2}, "many_threads": {"b": 3}}
    assert choose(options, 1) == {"a": 1, "b": 2}
    assert choose(options, 2) == {"a": 1, "b": 3}
    assert choose({}, 4) == {}
    monkeypatch.setenv("PJRT_NPROC", "3")
    assert thread_count() == 3
