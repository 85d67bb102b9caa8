"""What each kind of change needs: files from templates, or the steps of a guide, with the name filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from gcomp.errors import UsageError
from gcomp.making.pages import patched, steps_of
from gcomp.records import record

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@record
class Names:
    """A name in its spellings: `my-name`, `my_name`, `MyName`; and the domain of an ONNX operator."""

    kebab: str
    domain: str = "com.example"

    @property
    def snake(self) -> str:
        """As in Python's functions and files."""
        return self.kebab.replace("-", "_")

    @property
    def camel(self) -> str:
        """As in classes."""
        return "".join(part.capitalize() for part in self.kebab.split("-"))

    def fill(self, template: str, **more: str) -> str:
        """A template with its marks filled in."""
        text = (_TEMPLATES / f"{template}.txt").read_text("utf-8")
        known = {"KEBAB": self.kebab, "SNAKE": self.snake, "CAMEL": self.camel, "DOMAIN": self.domain} | more
        return re.sub(r"@([A-Z]+)@", lambda mark: known[mark[1]], text)


@record
class Made:
    """A file to write, whole: a new one, or (`changes`) one that is there, with a change."""

    path: Path
    text: str
    changes: bool = False


@record
class Plan:
    """The files that a change needs, and the commands that must pass then."""

    files: tuple[Made, ...]
    commands: tuple[str, ...]


def names_of(text: str, domain: str) -> Names:
    """A name in its spellings. UsageError for what is no name of words and hyphens."""
    kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text).replace("_", "-").lower()
    if not _NAME.fullmatch(kebab):
        raise UsageError(f"{text!r} is no name", why="a name is lower-case words with hyphens: my-pass")
    return Names(kebab, domain)


def checkout(folder: Path) -> bool:
    """Whether a folder is a checkout of gcomp's own source."""
    return (folder / "gcomp" / "passes" / "graph").is_dir() and (folder / "tests" / "filetests").is_dir()


def _pass(names: Names, folder: Path) -> Plan:
    if checkout(folder):
        files = (
            Made(folder / f"gcomp/passes/graph/{names.snake}.py", names.fill("pass.py")),
            Made(folder / f"tests/filetests/graph/{names.kebab}.mlir", names.fill("pass.mlir", LOAD="")),
        )
        pages = ("prove_table --new", "rules_table", "pass_table")
        suites = "tests/filetests tests/property tests/unit/testing/test_prove_rules.py tests/unit/test_universe.py"
        tables = "tests/unit/test_layers.py tests/unit/passes/test_tables.py tests/unit/passes/test_registry.py"
        return Plan(
            files,
            (f"gcomp try {names.kebab}", *(f"python -m tools.{page}" for page in pages),
             f"python -m pytest -k {names.kebab} {suites}", f"python -m pytest {tables}"),
        )  # fmt: skip
    files = (
        Made(folder / f"{names.snake}.py", names.fill("pass.py")),
        Made(folder / f"{names.snake}.mlir", names.fill("pass.mlir", LOAD=f" --load %S/{names.snake}.py")),
        Made(folder / f"test_{names.snake}.py", names.fill("pass_test.py")),
    )
    return Plan(files, (f"pytest test_{names.snake}.py {names.snake}.mlir", f"gcomp try {names.snake}.py"))


def _op(names: Names, folder: Path) -> Plan:
    """The steps of the guide, whose op has another name."""
    if not checkout(folder):
        raise UsageError("an op is added to gcomp's own source", why=f"{folder} is no checkout of it", fix="cd there")
    guide = (folder / "docs/guides/adding_an_op.md").read_text("utf-8")
    page = guide.replace("softplus", names.snake).replace("Softplus", names.camel)
    texts: dict[Path, str] = {}
    commands: list[str] = [f"python -m tools.audit gcomp.{names.snake}"]
    new: set[Path] = set()
    for step in steps_of(page):
        path = folder / step.path
        if step.language == "console":
            commands += step.text.splitlines()
        elif step.language == "python":
            texts[path] = step.text
            new.add(path)
        else:
            found = patched(texts.get(path) or path.read_text("utf-8"), step.text)
            if found is None:
                raise UsageError(
                    f"{step.path} is not what the guide says", why="the lines that it changes are not there",
                    fix="docs/guides/adding_an_op.md says what to add; do it by hand",
                )  # fmt: skip
            texts[path] = found
    return Plan(tuple(Made(path, text, path not in new) for path, text in texts.items()), tuple(commands))


def _onnx_operator(names: Names, folder: Path) -> Plan:
    if not checkout(folder):
        files = (
            Made(folder / f"{names.snake}.py", names.fill("onnx_operator.py")),
            Made(folder / f"test_{names.snake}.py", names.fill("onnx_operator_test.py", IMPORT=f"import {names.snake}  # noqa: F401  it registers the operator\n")),  # noqa: E501
        )  # fmt: skip
        return Plan(files, (f"python -m pytest test_{names.snake}.py",))
    registry = folder / "gcomp/frontends/onnx/engine/registry.py"
    text, mark = registry.read_text("utf-8"), '"vision",\n    ),'
    if text.count(mark) != 1:
        raise UsageError(f"{registry} is not as expected", fix="add the module to FAMILIES there by hand")
    files = (
        Made(folder / f"gcomp/frontends/onnx/operators/{names.snake}.py", names.fill("onnx_operator.py")),
        Made(folder / f"tests/unit/onnx/test_{names.snake}.py", names.fill("onnx_operator_test.py", IMPORT="")),
        Made(registry, text.replace(mark, f'"vision",\n        "{names.snake}",\n    ),'), True),
    )
    return Plan(files, (f"python -m pytest tests/unit/onnx/test_{names.snake}.py tests/unit/onnx/test_registry.py",))


def _target(names: Names, folder: Path) -> Plan:
    package = folder / f"{names.snake}_target"
    files = (
        Made(package / "__init__.py", names.fill("target.py")),
        Made(folder / "pyproject.toml", names.fill("target.toml")),
        Made(folder / f"test_{names.snake}_target.py", names.fill("target_test.py")),
    )
    return Plan(files, (f"python -m pytest test_{names.snake}_target.py", "pip install .",
                        f"gcomp fuzz --target {names.kebab}:float --programs 200"))  # fmt: skip


KINDS: Mapping[str, Callable[[Names, Path], Plan]] = {
    "pass": _pass, "op": _op, "onnx-operator": _onnx_operator, "target": _target,
}  # fmt: skip


def plan_of(kind: str, name: str, folder: Path, domain: str = "com.example") -> Plan:
    """What a change of a kind needs. UsageError for another kind, and where a file is there already."""
    if kind not in KINDS:
        raise UsageError(f"there is no kind {kind!r}", fix=f"kinds are: {', '.join(KINDS)}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", fix="name another one (--output)")
    plan = KINDS[kind](names_of(name, domain), folder)
    if taken := [made.path for made in plan.files if not made.changes and made.path.exists()]:
        raise UsageError(f"{taken[0]} is there already", fix="take another name, or another folder (--output)")
    return plan


def write(plan: Plan) -> Iterator[Made]:
    """Write the files of a plan, each as it is written."""
    for made in plan.files:
        made.path.parent.mkdir(parents=True, exist_ok=True)
        made.path.write_text(made.text, "utf-8")
        yield made


__all__ = ["KINDS", "Made", "Names", "Plan", "plan_of", "write"]
