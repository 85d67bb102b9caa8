"""Campaigns about lines of source: which statements count, whether they are seen to run, and what is chosen then."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import cast

import pytest
from typer.testing import CliRunner

import gcomp
from gcomp.cli.app import app
from gcomp.errors import UsageError
from gcomp.passes.registry import all_passes
from gcomp.testing.fuzz import Coverage, Limits, Plan, fuzz
from gcomp.testing.fuzz.attempt import attempt, look_at
from gcomp.testing.fuzz.chosen import Chooser, Look
from gcomp.testing.fuzz.directed import FAMILY
from gcomp.testing.fuzz.doors import OF_FOLDERS, door_of
from gcomp.testing.fuzz.numbers import base_of, vary_number
from gcomp.testing.fuzz.probes import Probes
from gcomp.testing.fuzz.source_lines import SourceLines, Span, changed_spans, spans_of

PACKAGE = Path(gcomp.__file__).parent

TABLES = '''"""A module."""
from functools import cache

LIMIT = 3
TWICE = 2 * LIMIT


def _row(value):
    return lambda x: (
        x + value
    )


ROWS = {"a": _row(LIMIT), "b": lambda x: x}


def used(x):
    """What uses the limit."""
    if x > TWICE:
        return ROWS["a"](x)
    for _ in range(2):
        x += 1
    return x


@cache
def once(
    x,
):
    return x
'''
OTHER = """from tables import LIMIT


def elsewhere(x):
    return x + LIMIT
"""


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "package").mkdir()
    for name, text in (
        ("__init__", ""),
        ("tables", TABLES),
        ("other", OTHER.replace("tables", "package.tables")),
        ("empty", "x = 1"),
    ):
        (tmp_path / "package" / f"{name}.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "package" / "tables.py"
    for name in [name for name in sys.modules if name.partition(".")[0] == "package"]:
        del sys.modules[name]


def _line(text: str, source: str = TABLES) -> int:
    return next(i for i, line in enumerate(source.splitlines(), 1) if text in line)


def _wanted(path: Path, text: str) -> set[tuple[str, str]]:
    lines = SourceLines((Span.of(f"{path}:{_line(text)}"),))
    return {(Path(file).name, Path(file).read_text("utf-8").splitlines()[n - 1].strip()) for file, n in lines.wanted}


def test_a_line_counts_where_it_runs_or_where_what_it_binds_is_used(tables: Path) -> None:
    limit, twice = ("other.py", "return x + LIMIT"), ("tables.py", "if x > TWICE:")
    of_rows = ("tables.py", 'return ROWS["a"](x)')
    assert _wanted(tables, "x += 1") == {("tables.py", "x += 1")}
    assert _wanted(tables, "x + value") == {("tables.py", "x + value")}
    assert _wanted(tables, "TWICE = ") == {twice}
    assert _wanted(tables, "LIMIT = 3") == {limit, twice, of_rows}
    assert _wanted(tables, "@cache") == {("tables.py", "return x")}


def test_lines_that_there_are_not_are_refused(tables: Path) -> None:
    for text in ("nowhere.py:3", f"{tables}:0", f"{tables}:1000", f"{tables}:5-4"):
        with pytest.raises(UsageError):
            Span.of(text)
    with pytest.raises(UsageError, match="no function runs"):
        _ = SourceLines((Span.of(str(tables.parent / "empty.py")),)).wanted
    assert str(Span.of(f"{tables}:3-5")) == "tables.py:3-5"


def test_probes_see_what_runs_and_change_nothing_else(tables: Path) -> None:
    from package import tables as module  # type: ignore[import-not-found]

    add = module.ROWS["a"]
    probes = Probes(SourceLines((Span.of(str(tables)),)))

    def seen(*args: int) -> set[str]:
        hits = probes.watch(lambda: [module.used(x) for x in args])
        return {TABLES.splitlines()[line - 1].strip() for _, line in hits}

    assert seen(1) == {"if x > TWICE:", "for _ in range(2):", "x += 1", "return x"}
    assert seen(9) == {"if x > TWICE:", 'return ROWS["a"](x)', "x + value"}
    assert (module.used(1), module.used(9), add(1), module.once(4)) == (3, 12, 4, 4)
    assert module.used.__doc__ == "What uses the limit."


def test_numbers_carry_variations() -> None:
    number = vary_number(vary_number(5, 0), 7)
    assert base_of(number) == 5
    assert len({5, vary_number(5, 0), vary_number(5, 1), number}) == 4
    for i in range(5):
        number = vary_number(number, i)
        assert base_of(number) == 5


def test_a_table_is_about_what_its_users_are_about() -> None:
    about = _about("lowering/tiles/expanding/coefficients.py", "0.0416666666666666,")
    assert {"cosine", "sine"} <= about.kin


def test_programs_are_taken_from_topics_that_reach_the_lines() -> None:
    """Of 100 topics, one reaches them: it soon has most of what is looked at, and its programs are varied."""
    chooser = Chooser(3, lambda number: str(base_of(number) % 100))
    for _ in range(30):
        numbers = chooser.numbers(20)
        chooser.learn([Look(n, base_of(n) % 100 == 17, way=n % 5) for n in numbers])
    numbers = chooser.numbers(200)
    assert sum(base_of(n) % 100 == 17 for n in numbers) > 120
    assert 40 < sum(n != base_of(n) for n in numbers) < 160
    assert not chooser.lost


def test_lines_out_of_reach_are_noticed() -> None:
    chooser = Chooser(3, str)
    chooser.learn([Look(n, reached=False) for n in range(500)])
    assert chooser.lost


def _about(path: str, text: str) -> SourceLines:
    source = (PACKAGE / path).read_text("utf-8")
    return SourceLines((Span.of(f"{PACKAGE / path}:{_line(text, source)}"),))


def test_a_campaign_judges_what_runs_the_lines() -> None:
    """What few random programs have: most of what is looked at soon runs it, and is judged."""
    about = _about("autodiff/linalg.py", "return")
    outcome = fuzz(Plan.of(about=about), Limits(programs=100), seed=1)
    seen = outcome.coverage
    assert outcome.tried == seen.looked == 100
    assert 10 < seen.reached <= seen.programs + seen.refused
    assert seen.programs <= seen.reached
    assert not outcome.failures


WRONG_PASS = '''
from dataclasses import dataclass
from typing import ClassVar
from gcomp.exactness import Exactness
from gcomp.ir import stablehlo as hlo
from gcomp.passes.base import Pass
from gcomp.passes.rewriting import Pattern, apply_rewrites


class Doubles(Pattern):
    name = "doubles"
    roots = (hlo.AbsOp, hlo.CosineOp, hlo.NegateOp)

    def rewrite(self, op, b):
        if isinstance(op, hlo.CosineOp) and op.operand.type.element_type != op.operand.type:
            return [b.emit(hlo.SineOp, op.operand)]
        return None


@dataclass(frozen=True)
class Wrong(Pass):
    """Takes sines."""

    name: ClassVar[str] = "wrong-cosine"
    level: ClassVar[str] = "graph"
    exactness: ClassVar[Exactness] = Exactness.E1

    def run(self, program, context):
        return apply_rewrites(program, (Doubles(),), context)
'''


@pytest.fixture
def wrong_pass(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "wrong_cosine.py"
    path.write_text(WRONG_PASS, "utf-8")
    known = set(all_passes())
    yield path
    for name in set(all_passes()) - known:
        del cast("dict[str, object]", all_passes())[name]


def test_a_number_alone_says_what_failed(wrong_pass: Path, tmp_path: Path) -> None:
    """A campaign about a wrong line finds it; the number of the program, with nothing else, shows it again."""
    runner = CliRunner()
    words = [
        "fuzz",
        "--pass",
        "wrong-cosine",
        "--load",
        str(wrong_pass),
        "-o",
        str(tmp_path / "cases"),
        "--seconds",
        "1",
    ]
    line = _line("hlo.SineOp", WRONG_PASS)
    found = runner.invoke(app, [*words, "--about", f"{wrong_pass}:{line}", "--programs", "120"])
    assert found.exit_code == 1
    assert f"programs that were looked at run wrong_cosine.py:{line}" in found.output
    plan = Plan.of(("wrong-cosine",), about=SourceLines((Span.of(f"{wrong_pass}:{line}"),)))
    outcome = fuzz(plan, Limits(programs=120))
    (failure,) = list(outcome.failures.values())[:1]
    again = runner.invoke(app, [*words, "--number", str(failure.number)])
    assert again.exit_code == 1
    assert failure.message.splitlines()[0] in again.output


def test_lines_that_no_program_runs_are_no_clean_bill(wrong_pass: Path, tmp_path: Path) -> None:
    words = ["fuzz", "--pass", "cse", "--about", str(wrong_pass), "--load", str(wrong_pass), "--programs", "20"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path)])
    assert result.exit_code == 1
    assert "0 of 20 programs that were looked at run wrong_cosine.py" in result.output


def test_what_changed_is_taken_from_git(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *identity, "-C", str(tmp_path), *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "a.py").write_text("x = 1\ny = 2\nz = 3\n", "utf-8")
    git("add", ".")
    git("commit", "-m", "first")
    with pytest.raises(UsageError, match="nothing has changed"):
        spans_of((), tmp_path)
    (tmp_path / "a.py").write_text("x = 1\ny = 5\nz = 3\nu = 4\nv = 5\n", "utf-8")
    (tmp_path / "new.py").write_text("w = 1\n", "utf-8")
    assert [str(span) for span in changed_spans(tmp_path)] == ["a.py:2", "a.py:4-5", "new.py"]


def test_a_file_says_what_judges_it() -> None:
    whole = {
        name: SourceLines((Span.of(str(PACKAGE / name)),)) for name in ("autodiff/linalg.py", "passes/graph/cse.py")
    }
    assert Plan.of(about=whole["autodiff/linalg.py"]).what == "autodiff"
    assert Plan.of(about=whole["passes/graph/cse.py"]).passes == ("cse",)
    assert Plan.of(("canonicalize",), about=whole["passes/graph/cse.py"]).passes == ("canonicalize",)
    with pytest.raises(UsageError, match="what judges"):
        Plan.of(about=SourceLines((Span.of(str(PACKAGE / "errors.py")),)))
    of_llvm = {name: SourceLines((Span.of(str(PACKAGE / "lowering/llvm" / name)),)) for name in ("lanes.py", "elf.py")}
    assert [Plan.of(about=about).what for about in of_llvm.values()] == ["machine", "processor"]
    assert [name for name in OF_FOLDERS if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("name", ["autodiff", "padding", "memory", "indexing", "tile", "machine", "jaxpr"])
def test_each_door_transforms_what_it_judges(name: str) -> None:
    """Looking runs a transformation without judging it; a topic is a text, and costs no program."""
    door = door_of(name)
    for number in Random(1).sample(range(1 << 20), 6):
        assert isinstance(door.topic(number), str)
    judged = Coverage()
    files = {"autodiff": "autodiff/sweeps.py", "padding": "padding/sweep.py", "memory": "memory/greedy.py",
             "indexing": "analysis/indexing/simplify.py", "tile": "lowering/tiles/schedules/contraction.py",
             "machine": "lowering/llvm/memory.py", "jaxpr": "frontends/jaxpr/importer.py"}  # fmt: skip
    about = SourceLines((Span.of(str(PACKAGE / files[name])),))
    plan = Plan.of(what=name, about=about)
    reached = [number for number in range(40, 56) if look_at(number, plan, about).reached]
    assert reached
    assert attempt(reached[0], plan, judged) is None


def test_families_begin_with_what_is_made_for_the_pass() -> None:
    looked = [look_at(FAMILY * i, Plan.of(("cse",), about=_about("passes/graph/cse.py", "return")), _about(
        "passes/graph/cse.py", "return")) for i in range(1, 4)]  # fmt: skip
    assert any(look.reached for look in looked)
