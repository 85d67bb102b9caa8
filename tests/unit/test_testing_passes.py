"""testing_passes.md tells the truth: its pass is wrong, its case shows it, and its repair is right and proved."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gcomp.cli import main
from gcomp.ir.program import Program
from gcomp.passes.registry import all_passes
from gcomp.testing.check import check_pass
from gcomp.testing.pytest_plugin import FuzzPass
from gcomp.testing.reduce import op_count, reduce_program
from gcomp.testing.reduce.predicates import keeps_failure

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "testing_passes.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.M | re.S)


@pytest.fixture(params=["wrong", "repaired"])
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[bool, ModuleType, Path]]:
    """The page's pass as a module, as it is and repaired; whether it is right, and its file."""
    first, repair, fuzzing, test = blocks("python")
    right = request.param == "repaired"
    if right:
        first = re.sub(r"^def together.*?\n\n\n", repair + "\n\n", first, flags=re.M | re.S)
    path = tmp_path / "pass_of_the_testing_page.py"
    path.write_text(f"{first}\n\n{fuzzing}\n\n{test}", "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield right, module, path
    del sys.modules[path.stem]


def test_the_page_s_test_and_case_tell_the_wrong_pass_from_the_right(example: tuple[bool, Any, Path]) -> None:
    right, module, _ = example
    (case,) = blocks("mlir")
    failure = check_pass(module.MergeReversals(), Program.parse(case))
    if right:
        module.test_merge_reversals()
        assert failure is None
        return
    assert failure is not None and (failure.kind, failure.rule) == ("meaning", "reverse-of-reverse")
    with pytest.raises(AssertionError, match="merge-reversals changed what the program computes"):
        module.test_merge_reversals()
    assert op_count(reduce_program(Program.parse(case), keeps_failure(module.MergeReversals(), failure))) == 2


def test_the_page_s_fixture_tells_them_apart(example: tuple[bool, Any, Path], fuzz_pass: FuzzPass) -> None:
    right, module, _ = example
    if right:
        module.test_merge_reversals_on_generated_programs(fuzz_pass)
        return
    with pytest.raises(pytest.fail.Exception, match="the rewrite reverse-of-reverse"):
        module.test_merge_reversals_on_generated_programs(fuzz_pass)


def test_the_page_s_case_runs_on_the_command_line(
    example: tuple[bool, Any, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    right, _, path = example
    case = path.with_suffix(".mlir")
    case.write_text(blocks("mlir")[0], "utf-8")
    line = ["gcomp", "opt", str(case), "-p", "merge-reversals", "--check-each", "--load", str(path)]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as caught:
        main()
    all_passes().pop("merge-reversals", None)  # type: ignore[attr-defined]
    assert caught.value.code == (0 if right else 1)
    assert right or "reverse-of-reverse" in capfd.readouterr().err


def test_the_rule_is_proved_once_it_is_right(example: tuple[bool, Any, Path]) -> None:
    right, module, _ = example
    pytest.importorskip("z3")
    from gcomp.testing.prove import prove

    assert str(prove(module.RULE)).partition(": ")[2].startswith("proved" if right else "refuted")


def test_options_that_the_page_names_exist() -> None:
    commands = {"compile", "opt", "fuzz", "bisect", "reduce"}
    source = "".join(path.read_text("utf-8") for path in (PAGE.parents[2] / "gcomp" / "cli").glob("*.py"))
    text = re.sub(r"'[^'\n]*'", "", PAGE.read_text("utf-8"))
    lines = [line for line in text.splitlines() if line.startswith("gcomp ")]
    assert {line.split()[1] for line in lines} == commands
    for option in {word for line in lines for word in line.split() if word.startswith("--")}:
        name = option[2:].replace("-", "_")
        assert f'"{option}"' in source or re.search(rf"^    {name}: ", source, flags=re.M), option
