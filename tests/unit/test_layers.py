"""Imports point down: the house's layers, and which libraries each may use (docs/guides/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gcomp

ROOT = Path(gcomp.__file__).parent
FOUNDATIONS = {"deferring", "errors", "dims", "dtypes", "exactness", "formats", "owners", "version"}
ALLOWED: dict[str, set[str]] = {
    "dims": set(),
    "errors": set(),
    "deferring": set(),
    "owners": set(),
    "version": set(),
    "exactness": set(),
    "formats": set(),
    "dtypes": set(),
    # Problems of numbers and intervals: a pass builds them from programs.
    "memory": {"errors"},
    "ir": FOUNDATIONS,
    "reference.numpy": FOUNDATIONS,
    "reference": FOUNDATIONS | {"ir", "reference.numpy"},
    "analysis": FOUNDATIONS | {"ir"},
    # Ops in simpler ones: for derivatives, and for targets without a form of their own for them.
    "decompositions": FOUNDATIONS | {"ir"},
    # Derivatives of programs: a pass and a public function use them.
    "autodiff": FOUNDATIONS | {"ir", "decompositions"},
    # Complex numbers as pairs of real ones: a pass applies it.
    "pairs": FOUNDATIONS | {"ir", "decompositions"},
    # Programs for padded sizes: where real elements lie follows from indexing maps, and constants from the reference.
    "padding": FOUNDATIONS | {"ir", "analysis", "reference", "reference.numpy"},
    # Operations with NumPy's names: on arrays they run at once by the reference, on traced tensors they build programs.
    "tensors": FOUNDATIONS | {"ir", "reference", "reference.numpy"},
    "ops": FOUNDATIONS | {"ir", "tensors"},
    "frontends": FOUNDATIONS | {"ir", "reference", "reference.numpy", "tensors", "ops"},
    "passes": FOUNDATIONS
    | {"ir", "analysis", "autodiff", "decompositions", "padding", "pairs", "reference", "reference.numpy", "memory"},
    # What lowering makes, a plan, is the runtime's own data.
    # Tile programs have the functions that the graph level means, and schedules try regions out.
    "lowering": FOUNDATIONS | {"ir", "analysis", "runtime", "reference", "reference.numpy"},
    "runtime": FOUNDATIONS | {"reference.numpy"},
    # A target is all that compiles for it and runs it; the runtime finds its module by name.
    "targets": FOUNDATIONS | {"ir", "passes", "lowering", "runtime"},
    "options": {"dims", "errors", "frontends", "passes"},
    "sources": FOUNDATIONS | {"ir", "frontends", "factories", "options", "texts"},
    # What may be asked for besides compiling: the driver runs them around passes and lowering.
    "stages": FOUNDATIONS | {"ir", "passes", "padding", "runtime", "targets", "options", "testing"},
    "driver": {"options", "sources", "stages", "targets", "passes", "runtime", "texts", "frontends"},
    # Programs of training steps, built with gcomp's own operations from any model.
    "training": FOUNDATIONS
    | {"ir", "frontends", "passes", "runtime", "driver", "options", "sources", "gradients", "ops", "tensors", "texts"},
}
LIBRARIES: dict[str, tuple[str, ...]] = {
    "onnx": ("frontends.onnx", "testing.foreign", "testing.fuzz.imported"),
    "onnx_ir": ("frontends.onnx",),
    "jax": (
        *("frontends.jaxpr", "lowering.xla", "runtime.xla"),
        *("testing.oracles", "testing.foreign", "testing.fuzz.imported"),
    ),
    "jaxlib": ("frontends.jaxpr", "lowering.xla", "runtime.xla", "testing.oracles"),
    "torch": ("frontends.fx", "testing.foreign", "testing.fuzz.imported"),
    "triton": ("lowering.triton",),
    "z3": ("testing.prove",),
    "ortools": ("memory.cpsat",),
    "xdsl": (
        *("ir", "reference", "analysis", "autodiff", "decompositions", "padding", "pairs", "frontends", "passes"),
        *("lowering", "testing", "cli", "universe", "ops", "tensors"),
    ),
}
SIBLINGS = ("frontends", "lowering")
FACE = {"frontends.onnx.backend"}
"""Modules that stand in front of gcomp though they lie in a layer: they use its public face, and nothing uses them."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, functions included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "gcomp":
            yield from (f"gcomp.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def layer(module: str) -> str:
    return "reference.numpy" if module.startswith("reference.numpy") else module.partition(".")[0]


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_down(path: Path) -> None:
    module = module_name(path)
    own = layer(module)
    for name in imports(path):
        package, _, rest = name.partition(".")
        if package == "gcomp" and rest and own in ALLOWED and module not in FACE:
            target = layer(rest)
            assert target == own or target in ALLOWED[own], f"{module} imports {name}"
        if name == "gcomp" and own in ALLOWED:
            assert module in FACE, f"{module} imports gcomp's public face"
        assert name.removeprefix("gcomp.") not in FACE, f"{module} imports {name}"
        if package in LIBRARIES:
            assert any(f"{module}.".startswith(f"{place}.") for place in LIBRARIES[package]), f"{module} imports {name}"
        if module.startswith("reference.numpy"):
            assert package != "xdsl", f"{module} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_siblings_do_not_meet(path: Path) -> None:
    parts = module_name(path).split(".")
    for name in imports(path):
        target = name.split(".")[1:]
        for place in SIBLINGS:
            if len(parts) > 1 and len(target) > 1 and parts[0] == target[0] == place:
                # A module beside the siblings is what they share.
                if (ROOT / place / f"{target[1]}.py").exists():
                    continue
                assert parts[1] == target[1], f"{'.'.join(parts)} imports {name}"
        if len(parts) > 2 and parts[0] == "passes" and len(target) > 2 and target[0] == "passes":
            assert parts == target[: len(parts)], f"the pass {'.'.join(parts)} imports the pass {name}"


def test_budgets() -> None:
    """Files stay readable: at most 600 lines, functions at most 70."""
    for path in FILES:
        text = path.read_text("utf-8")
        assert text.count("\n") <= 600, f"{module_name(path)} is too long"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno
                assert length <= 70, f"{module_name(path)}.{node.name} has {length} lines"
