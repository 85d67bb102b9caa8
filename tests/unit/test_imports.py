"""What a path does not need is not imported for it: libraries take as long to load as a small model to compile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gcomp.deferring import defer_imports

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"

COMPILE = """
import json, sys
from gcomp.cli.app import main
sys.argv = ["gcomp", "compile", sys.argv[1], "-o", sys.argv[2], "--target", sys.argv[3]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
loaded = [name for name in sys.modules if "Lazy" not in type(sys.modules[name]).__name__]
print(json.dumps(loaded))
"""

LIBRARIES = {
    "annotated_doc", "cython_runtime", "google", "immutabledict", "ml_dtypes", "numpy", "onnx", "onnx_ir", "packaging",
    "shellingham", "typer", "typing_extensions", "xdsl",
}  # fmt: skip
"""What compiling a file for a processor may load (`cython_runtime` is of NumPy's random numbers, with which errors are
measured). Neither jax nor llvmlite: LLVM runs in processes of its own."""

UNNEEDED = {
    "google.protobuf.json_format", "google.protobuf.text_format", "onnx.compose", "onnx.parser", "tarfile",
    "numpy.ma", "xdsl.dialects.arith", "xdsl.interpreter", "gcomp.frontends.onnx.operators.microsoft.fused",
    "gcomp.frontends.onnx.operators.ml.trees",
}  # fmt: skip
"""Parts of libraries, and of gcomp, that it does without."""


@pytest.mark.parametrize(
    ("target", "lowering"), [("xla:cpu", "gcomp.lowering.xla.lower"), ("cpu", "gcomp.lowering.llvm.lower")]
)
def test_compiling_a_file_loads_neither_xla_nor_what_judges(target: str, lowering: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILE, str(DIGITS), str(tmp_path / "m.gcomp"), target]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert (tmp_path / "m.gcomp").exists() and lowering in loaded
    assert not loaded & {"gcomp.passes.verifying", "gcomp.padding.programs", *UNNEEDED}
    others = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names - LIBRARIES
    assert {name for name in others if not name.startswith("_")} - {"sitecustomize", "usercustomize"} == {"gcomp"}


def test_a_deferred_module_is_loaded_by_the_first_look_at_it(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "seldom_used.py").write_text("import sys\nsys.seldom = True\nVALUE = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "seldom", False, raising=False)
    with defer_imports("seldom_used"):
        import seldom_used  # type: ignore[import-not-found]
    try:
        assert not sys.seldom  # type: ignore[attr-defined]
        assert seldom_used.VALUE == 7 and sys.seldom  # type: ignore[attr-defined]
    finally:
        del sys.modules["seldom_used"]
