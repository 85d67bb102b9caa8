"""A cache of kernels for these tests alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gcomp.runtime.folders import CACHE


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set for the module only: other tests look at what else is kept in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE, str(tmp_path_factory.getbasetemp() / "kernels"))
        yield
