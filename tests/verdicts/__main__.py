"""Which judges refute which wrong passes: `python -m tests.verdicts`. Exits 1 where one does not.

`python -m tests.verdicts NAME...` asks about these alone; `--write` renews docs/generated/verdicts.md, too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from gcomp.cli.app import app
from gcomp.errors import GcompError
from gcomp.testing.check import check_pass
from tests.verdicts import FILES, WRONG, Wrong

LOAD = [word for file in FILES for word in ("--load", str(file))]
Judge = Callable[[Wrong, Path], str]
"""What it says of a pass: "refuted", "not tried" where it says that no rewrite applied, or "MISSED"."""


def told(*arguments: str) -> tuple[int, str]:
    """The exit status and output of a gcomp command."""
    result = CliRunner().invoke(app, arguments)
    if isinstance(result.exception, GcompError):
        return 1, str(result.exception)
    return result.exit_code, result.output


def commands(*words: str) -> Judge:
    """A judge that is a command on a file of the program: it must fail, and name the rewrite."""

    def refutes(wrong: Wrong, model: Path) -> str:
        sizes = [word for name, size in wrong.sizes.items() for word in ("--dim", f"{name}={size}")]
        known = {"MODEL": str(model), "PASS": wrong.name, "OUT": str(model.with_suffix(".out"))}
        arguments = [known.get(word, word) for word in words]
        status, text = told(*arguments, *LOAD, *(sizes if "MODEL" in words else []))
        if status != 1 or wrong.name not in text:
            return "MISSED"
        return "refuted" if "changed what the program computes" in " ".join(text.split()) else "not tried"

    return refutes


JUDGES: dict[str, Judge] = {
    "check_pass": lambda wrong, model: "MISSED" if check_pass(wrong.name, wrong.parsed()) is None else "refuted",
    "compile --verify each": commands("compile", "MODEL", "-o", "OUT", "-p", "PASS", "--verify", "each"),
    "opt --check-each": commands("opt", "MODEL", "-p", "PASS", "--check-each"),
    "bisect": commands("bisect", "MODEL", "-p", "PASS"),
    "fuzz --pass": commands("fuzz", "--pass", "PASS", "--programs", "1000", "--seconds", "1", "-o", "OUT"),
}


PAGE = Path(__file__).parents[2] / "docs" / "generated" / "verdicts.md"
HEAD = """# Wrong passes and who refutes them

Written by `python -m tests.verdicts --write`; do not edit.

The passes of `tests/verdicts/wrong.py` and `conditions.py` are right on ordinary inputs of ordinary sizes, or nearly.
Each judge is asked as a user asks it: the command must fail, say that the program computes something else, and name
the rewrite.

"""


def main() -> int:
    """Print the table, and write it with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a wrong pass (all of them)")
    parser.add_argument("--write", action="store_true", help="write docs/generated/verdicts.md, of all passes")
    options = parser.parse_args()
    rows: list[list[str]] = []
    names: list[str] = options.names
    told("opt", "--list-passes", *LOAD)
    with tempfile.TemporaryDirectory() as folder:
        for wrong in [one for one in WRONG if one.name in names or not names]:
            model = Path(folder) / f"{wrong.name}.mlir"
            model.write_text(wrong.program, "utf-8")
            rows.append([wrong.name, *(judge(wrong, model) for judge in JUDGES.values())])
    head, table = ["pass", *JUDGES], Table("pass", *JUDGES)
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)
    if options.write and not names:
        lines = [head, ["---"] * len(head), *rows]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        reasons = "\n".join(f"- `{wrong.name}`: {wrong.why}" for wrong in WRONG)
        PAGE.write_text(f"{HEAD}{text}\n\n{reasons}\n", "utf-8")
    return 1 if any("MISSED" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
