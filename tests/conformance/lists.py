"""The committed lists of cases: those that do not pass now, and those that ever failed."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.summary import Results

NOT_PASSED = Path(__file__).with_name("not_passed.txt")
"""Cases that gcomp does not pass, and why: `name: class: reason` on each line."""

EVER_FAILED = Path(__file__).with_name("ever_failed.txt")
"""Names of all cases that once did not pass: they are tried at every run of the tests."""

HEAD = "# {}; renewed by python -m tests.conformance.run --write\n"


def not_passed() -> dict[str, str]:
    """Case -> why it does not pass."""
    return dict(line.split(": ", 1) for line in _lines(NOT_PASSED))


def ever_failed() -> list[str]:
    """The cases that once did not pass."""
    return _lines(EVER_FAILED)


def write(results: Results) -> None:
    """Renew both lists with gcomp's outcomes."""
    failures = {n: f"{o.kind}: {o.detail[:200]}" for n, o in sorted(results.items()) if o.kind != "passed"}
    text = "".join(f"{name}: {reason}\n" for name, reason in failures.items())
    NOT_PASSED.write_text(HEAD.format("Cases of ONNX's suite that gcomp does not pass") + text, encoding="utf-8")
    names = sorted({*ever_failed(), *failures} & results.keys())
    text = "".join(f"{name}\n" for name in names)
    EVER_FAILED.write_text(HEAD.format("Cases of ONNX's suite that once failed") + text, encoding="utf-8")


def _lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]
