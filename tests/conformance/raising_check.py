"""Counts the attentions and norms of one architecture, in its source and as each frontend brings it; a worker."""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import gcomp
from gcomp.errors import GcompError
from gcomp.ir import stablehlo as hlo
from gcomp.ir.program import Program
from gcomp.passes.base import PassContext
from gcomp.passes.pipelines import RAISE
from gcomp.passes.registry import parse_pipeline
from tests.conformance.architecture_export import Flat, build, inputs
from tests.conformance.architecture_table import ARCHITECTURES, Architecture
from tests.conformance.torch_architecture_check import export

NORMS = ("LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm", "T5LayerNorm")


def source(model: torch.nn.Module, arch: Architecture) -> Counter[str]:
    """How often one run of the module attends and normalizes: calls of torch's functions, and of modules by name."""
    found: Counter[str] = Counter()
    functional = torch.nn.functional
    attend, soft = functional.scaled_dot_product_attention, functional.softmax

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(x: Any, *args: Any, **keywords: Any) -> Any:
            # Weights of attention have two sequences and the heads.
            found["attention"] += int(function is attend or x.dim() >= 4)
            return function(x, *args, **keywords)

        return call

    hooks = [
        m.register_forward_hook(lambda *_: found.update(["norm"]))
        for m in model.modules()
        if any(name in type(m).__name__ for name in NORMS) and not list(m.children())
    ]
    functional.scaled_dot_product_attention, functional.softmax = counted(attend), counted(soft)
    try:
        with torch.no_grad():
            model(*[torch.from_numpy(a) for a in inputs(arch, arch.example, 0).values()])
    finally:
        functional.scaled_dot_product_attention, functional.softmax = attend, soft
        for hook in hooks:
            hook.remove()
    return found


KINDS = {"gcomp.layer_norm": "norm", "gcomp.rms_norm": "norm", "gcomp.attention": "attention"}


def count(program: Program) -> Counter[str]:
    """The attentions and norms that a program names outside decompositions, and what else it does."""
    called = {op.decomposition_name for op in program.ops() if isinstance(op, hlo.CompositeOp)}
    found: Counter[str] = Counter()
    for function in program.functions():
        if function.sym_name.data in called:
            continue
        for op in function.walk():
            if isinstance(op, hlo.CompositeOp):
                found[KINDS.get(op.composite_name, op.composite_name)] += 1
            elif isinstance(op, hlo.BatchNormInferenceOp):
                found["norm"] += 1
    return found


def doors(arch: Architecture, model: torch.nn.Module, folder: Path) -> dict[str, Callable[[], Program]]:
    """The frontends that an architecture can come through."""
    found: dict[str, Callable[[], Program]] = {
        "torch.export": lambda: gcomp.import_model(export(model, arch, "dynamic"))
    }
    for exporter in ("dynamo", "torchscript"):
        path = folder / f"{arch.name}-{exporter}.onnx"
        if path.exists():
            found[f"ONNX, {exporter}"] = lambda path=path: gcomp.import_model(str(path))
    return found


def main(name: str, folder: str) -> None:
    """Print the counts as JSON."""
    warnings.simplefilter("ignore")
    arch = next(a for a in ARCHITECTURES if a.name == name)
    model = Flat(build(arch), arch).eval()
    result: dict[str, Any] = {"name": name, "source": source(model, arch), "doors": {}}
    for door, make in doors(arch, model, Path(folder)).items():
        try:
            program = make()
            named = count(program)
            for step in parse_pipeline(RAISE):
                step.run(program, PassContext())
            result["doors"][door] = {"named": named, "found": count(program)}
        except GcompError as error:
            result["doors"][door] = {"error": f"{type(error).__name__}: {error.what}"}
        except Exception as error:
            result["doors"][door] = {"error": f"not exported: {type(error).__name__}: {str(error)[:80]}"}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
