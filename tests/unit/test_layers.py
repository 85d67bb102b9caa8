"""Imports point down: the house's layers, and which libraries each may use (docs/guides/architecture.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import gcomp

ROOT = Path(gcomp.__file__).parent
FOUNDATIONS = {
    "deferring",
    "errors",
    "dims",
    "dtypes",
    "exactness",
    "formats",
    "html",
    "owners",
    "processors",
    "records",
    "sharding",
    "version",
}
ALLOWED: dict[str, set[str]] = {
    "dims": {"records"},
    "errors": set(),
    "deferring": set(),
    "processors": set(),
    "records": set(),
    "sharding": set(),
    "owners": set(),
    "version": set(),
    "collecting": set(),
    "exactness": set(),
    "formats": set(),
    "html": set(),
    "dtypes": set(),
    # Problems of numbers and intervals: a pass builds them from programs.
    "memory": {"errors", "records"},
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
    # Which dimensions of ops may be cut across devices: indexing maps show most of it.
    "partitioning": FOUNDATIONS | {"ir", "analysis"},
    # Programs for padded sizes: where real elements lie follows from indexing maps, and constants from the reference.
    "padding": FOUNDATIONS | {"ir", "decompositions", "analysis", "reference", "reference.numpy"},
    # Operations with NumPy's names: on arrays they run at once by the reference, on traced tensors they build programs.
    "tensors": FOUNDATIONS | {"ir", "reference", "reference.numpy"},
    "ops": FOUNDATIONS | {"ir", "tensors"},
    # ONNX has an operator that is a derivative.
    "frontends": FOUNDATIONS | {"ir", "autodiff", "reference", "reference.numpy", "tensors", "ops"},
    "passes": FOUNDATIONS
    | {"ir", "analysis", "autodiff", "decompositions", "padding", "pairs", "partitioning", "reference"}
    | {"reference.numpy", "memory"},
    # Ops and passes of this installation and of extensions, by name.
    "universe": {"ir", "passes"},
    # Answers of a target beside the reference's: compilations that are verified use it, and all of testing.
    "judging": FOUNDATIONS | {"ir", "passes", "reference", "reference.numpy"},
    # What lowering makes, a plan, is the runtime's own data.
    # Tile programs have the functions that the graph level means, and schedules try regions out.
    "lowering": FOUNDATIONS | {"ir", "analysis", "runtime", "reference", "reference.numpy"},
    "runtime": FOUNDATIONS | {"reference.numpy"},
    # A target is all that compiles for it and runs it; the runtime finds its module by name.
    "targets": FOUNDATIONS | {"ir", "analysis", "passes", "lowering", "runtime"},
    "texts": FOUNDATIONS | {"ir", "runtime"},
    "factories": {"errors", "records"},
    "options": {"dims", "errors", "exactness", "frontends", "passes", "records", "sharding"},
    "sources": FOUNDATIONS | {"ir", "frontends", "factories", "options", "texts"},
    # Models that are made from seeds, to ask questions about.
    "corpus": FOUNDATIONS | {"ir", "runtime", "sources", "texts"},
    # What may be asked for besides compiling: the driver runs them around passes and lowering.
    "stages": FOUNDATIONS | {"ir", "passes", "padding", "runtime", "targets", "options", "judging"},
    "driver": {
        "collecting",
        "dims",
        "exactness",
        "options",
        "sharding",
        "sources",
        "stages",
        "targets",
        "passes",
        "runtime",
        "texts",
        "frontends",
    },
    # What users call besides `compile`: each stands on the driver, and none on another but for gradients.
    "gradients": FOUNDATIONS | {"ir", "analysis", "autodiff", "passes", "sources"},
    "functions": FOUNDATIONS | {"ir", "driver", "frontends", "ops", "options", "runtime", "tensors"},
    "graph": FOUNDATIONS | {"ir", "driver", "frontends", "gradients", "ops", "options", "runtime", "tensors"},
    "jitting": FOUNDATIONS | {"driver", "frontends", "options", "runtime"},
    "dynamo": FOUNDATIONS | {"ir", "driver", "frontends", "options", "runtime", "targets"},
    # Programs of training steps, built with gcomp's own operations from any model.
    "training": FOUNDATIONS
    | {"ir", "frontends", "passes", "runtime", "driver", "options", "sources", "gradients", "ops", "tensors", "texts"},
    # The public face, which tools use as users do.
    "gcomp": FOUNDATIONS
    | {"ir", "reference.numpy", "runtime", "ops", "frontends", "sources", "driver"}
    | {"gradients", "functions", "graph", "jitting", "training"},
    # ONNX's backend protocol: tools run ONNX models through it.
    "onnx_backend": FOUNDATIONS | {"frontends", "runtime", "gcomp"},
    "testing": FOUNDATIONS
    | {"ir", "analysis", "autodiff", "lowering", "memory", "padding", "pairs", "partitioning", "passes"}
    | {"reference", "reference.numpy", "runtime", "targets", "sources", "driver", "judging", "gcomp"},
    # Files for new passes, ops, operators and targets.
    "making": {"errors", "records"},
    # Honest timing: of anything that can be called, and of models beside other ways to run them.
    "measuring": FOUNDATIONS | {"ir", "reference", "sources", "factories", "gcomp"},
    # `gcomp try`: questions over what exists; nothing that compiles knows of it.
    "trying": FOUNDATIONS
    | {"ir", "analysis", "corpus", "measuring", "passes", "reference", "reference.numpy", "runtime", "sources"}
    | {"targets", "testing"},
    # Pages of compilations: what is shown of a pass is what was proved of it, too.
    "report": FOUNDATIONS
    | {"ir", "analysis", "driver", "frontends", "partitioning", "passes", "reference", "runtime", "sources"}
    | {"targets", "testing"},
    "cli": FOUNDATIONS
    | {"report", "partitioning"}
    | {"ir", "analysis", "frontends", "lowering", "padding", "passes", "reference", "runtime", "targets"}
    | {
        "collecting",
        "options",
        "sources",
        "texts",
        "driver",
        "judging",
        "training",
        "testing",
        "making",
        "measuring",
        "trying",
        "gcomp",
    },
    "__main__": {"cli"},
}
"""Layer -> the layers that it may import: a folder of gcomp, or a module that lies in none; `gcomp` is its own face."""
ROOMS = {
    "frontends.onnx.model": set[str](),
    "frontends.onnx.engine": {"frontends.onnx.model"},
    "frontends.onnx.operators": {"frontends.onnx.model", "frontends.onnx.engine"},
    # Tile programs, and their two printers.
    "lowering.tiles": set[str](),
    "lowering.triton": {"lowering.tiles"},
    "lowering.llvm": {"lowering.tiles"},
}
"""Rooms of one layer, which have a direction of their own -> those that they may import."""
LIBRARIES: dict[str, tuple[str, ...]] = {
    "onnx": ("frontends.onnx", "onnx_backend", "corpus", "testing.foreign", "testing.fuzz.imported"),
    "onnx_ir": ("frontends.onnx",),
    "jax": (
        *("frontends.jaxpr", "lowering.xla", "runtime.xla"),
        *("corpus", "testing.oracles", "testing.foreign", "testing.fuzz.imported"),
    ),
    "jaxlib": ("frontends.jaxpr", "lowering.xla", "runtime.xla", "testing.oracles"),
    "torch": ("frontends.fx", "corpus", "testing.foreign", "testing.fuzz.imported"),
    "triton": ("lowering.triton",),
    "llvmlite": ("lowering.llvm",),
    "z3": ("testing.prove",),
    "ortools": ("memory.cpsat",),
    "xdsl": (
        *("ir", "reference", "analysis", "autodiff", "decompositions", "padding", "pairs"),
        *("partitioning", "frontends", "passes"),
        *("lowering", "judging", "testing", "trying", "report", "cli", "universe", "ops", "tensors"),
    ),
}
SIBLINGS = ("frontends", "lowering")
SHARED = ("lowering.tiles",)
"""Rooms among siblings that the others share."""
FACE = {"frontends.onnx.backend"}
"""Modules that stand in front of gcomp though they lie in a layer: they use its public face, and nothing uses them."""


FILES = sorted(ROOT.rglob("*.py"))


def module_name(path: Path) -> str:
    """A file's module, without `gcomp.`; gcomp's own face is `gcomp`."""
    return (
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__").removeprefix("gcomp.")
    )


MODULES = {module_name(path): path for path in FILES}


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, those of functions and those that only types need included."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and not node.level, f"{path} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner.removeprefix("gcomp.") in MODULES else node.module


def own_imports(path: Path) -> Iterator[str]:
    """The modules of gcomp that a file imports."""
    return (name.removeprefix("gcomp.") for name in imports(path) if name.partition(".")[0] == "gcomp")


def layer(module: str) -> str:
    return "reference.numpy" if module.startswith("reference.numpy") else module.partition(".")[0]


def test_every_folder_has_a_direction() -> None:
    assert {layer(module) for module in MODULES} == {*ALLOWED}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_down(path: Path) -> None:
    module = module_name(path)
    own = layer(module)
    for name in own_imports(path):
        target = layer(name)
        assert module in FACE or target == own or target in ALLOWED[own], f"{module} imports {name}"
        assert name not in FACE, f"{module} imports {name}"
    for name in imports(path):
        package = name.partition(".")[0]
        if package in LIBRARIES:
            assert any(f"{module}.".startswith(f"{place}.") for place in LIBRARIES[package]), f"{module} imports {name}"
        if module.startswith("reference.numpy"):
            assert package != "xdsl", f"{module} imports {name}"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_have_a_direction(room: str) -> None:
    for module in (m for m in MODULES if m.startswith(f"{room}.")):
        for name in own_imports(MODULES[module]):
            target = next((other for other in ROOMS if f"{name}.".startswith(f"{other}.")), room)
            assert target == room or target in ROOMS[room], f"{module} imports {name}"


def test_no_circles() -> None:
    """A file can be read, and understood, after those that it imports: no two need each other."""
    graph = {module: {*own_imports(path)} - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        pytest.fail("a circle of imports: " + " -> ".join(reversed(circle)))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_siblings_do_not_meet(path: Path) -> None:
    parts = module_name(path).split(".")
    for name in own_imports(path):
        target = name.split(".")
        for place in SIBLINGS:
            if len(parts) > 1 and len(target) > 1 and parts[0] == target[0] == place:
                # A module beside the siblings is what they share.
                if (ROOT / place / f"{target[1]}.py").exists() or f"{place}.{target[1]}" in SHARED:
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
