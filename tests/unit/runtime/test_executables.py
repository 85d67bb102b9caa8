"""The cache of executables on disk: off by default, only in a folder that is the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcomp.errors import UsageError
from gcomp.runtime.folders import CACHE
from gcomp.runtime.xla.client import Client
from gcomp.runtime.xla.options import choose, thread_count
from tests.unit.runtime.models import CONV_NET, conv_net, conv_weights, images, make_model


def test_executables_are_kept_and_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE, str(folder))
    x = images(2)
    first = make_model(CONV_NET, conv_weights())(x)[0]
    (kept,) = folder.iterdir()
    content = kept.read_bytes()

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Client, "compile", refuse)
    model = make_model(CONV_NET, conv_weights())
    assert np.array_equal(model(x)[0], first) and np.array_equal(first, conv_net(x, conv_weights()))
    assert model.memory(batch=2).total_bytes > 0
    assert kept.read_bytes() == content
    with pytest.raises(AssertionError, match="again"):
        model(images(3))


def test_what_cannot_be_read_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    x = images(1)
    make_model(CONV_NET, conv_weights())(x)
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_bytes(b"")
    assert np.array_equal(make_model(CONV_NET, conv_weights())(x)[0], conv_net(x, conv_weights()))


def test_without_the_variable_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_model(CONV_NET, conv_weights())(images(1))
    assert not list(tmp_path.iterdir())


def test_folders_that_others_can_write_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv(CACHE, str(tmp_path))
    with pytest.raises(UsageError, match="not safe"):
        make_model(CONV_NET, conv_weights())(images(1))


def test_options_follow_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"always": {"a": 1, "b": 1}, "one_thread": {"b": 2}, "many_threads": {"b": 3}}
    assert choose(options, 1) == {"a": 1, "b": 2}
    assert choose(options, 2) == {"a": 1, "b": 3}
    assert choose({}, 4) == {}
    monkeypatch.setenv("PJRT_NPROC", "3")
    assert thread_count() == 3
