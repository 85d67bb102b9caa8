"""Published bugs of other compilers: each says where it comes from, each can be made, and a sample is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gcomp.passes import registry
from gcomp.testing.fuzz import Limits, Plan, fuzz
from tests.mutants.published.catalog import FOLDER, published
from tests.support.thinning import thinned

ROOT = Path(__file__).resolve().parents[3]
BUGS = {bug.name: bug for bug in published()}
SAMPLE = {
    "stablehlo-and-one": 300, "onnx-consecutive-transposes": 600, "iree-sign-of-nan": 300, "xla-nested-update": 25,
}  # fmt: skip
"""In how many programs they are found."""
QUICK = ("stablehlo-and-one", "xla-nested-update")
"""Those that `make test` looks for; `make published-bugs` looks for all."""


@pytest.fixture
def passes() -> Iterator[dict[str, object]]:
    """The passes that there are, which a test may add to."""
    known = registry.all_passes()
    before = dict(known)
    yield known  # type: ignore[misc]
    for name in [name for name in known if name not in before]:
        del known[name]  # type: ignore[attr-defined]


def test_each_names_its_project_and_its_source() -> None:
    assert len(BUGS) >= 40
    for bug in BUGS.values():
        assert bug.project and bug.about and bug.sources, bug.name
        assert all(source.startswith("https://github.com/") for source in bug.sources)


def test_every_edit_still_applies() -> None:
    for bug in BUGS.values():
        if bug.edit is not None:
            module, old, new = bug.edit
            source = (ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8")
            assert source.count(old) == 1 and old != new, bug.name


def test_every_pass_loads_under_its_name(passes: dict[str, object]) -> None:
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        assert registry.load_passes(path) == [path.stem.replace("_", "-")]


@pytest.mark.parametrize("name", thinned(SAMPLE, QUICK.__contains__))
def test_is_found(name: str, passes: dict[str, object]) -> None:
    registry.load_passes(FOLDER / f"{name.replace('-', '_')}.py")
    outcome = fuzz(Plan.of((name,)), Limits(programs=SAMPLE[name]), seed=3)
    assert [key for key in outcome.failures if key[0] == "meaning"], outcome.coverage
