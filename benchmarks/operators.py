"""The operators of every exported workload: which ONNX operators, opsets and attributes an importer meets.

    python -m benchmarks.operators [--workloads all] [--variants dynamo,legacy] > operators.md

Prints markdown: one table over all models, then one section per model.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

import onnx

from benchmarks.workloads import VARIANTS, Variant, Workload, select


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Every node of a graph, those of nested subgraphs included."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes(inner)


def qualified(node: onnx.NodeProto) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def signature(values: Any) -> str:
    """Inputs or outputs as `name: dtype[dims]`, comma-separated, at most four of them."""
    shown = []
    for value in values[:4]:
        tensor = value.type.tensor_type
        dims = ", ".join(dim.dim_param or str(dim.dim_value) for dim in tensor.shape.dim)
        shown.append(f"{value.name}: {onnx.TensorProto.DataType.Name(tensor.elem_type).lower()}[{dims}]")
    return ", ".join(shown) + (f", ... ({len(values)} in all)" if len(values) > 4 else "")


def section(workload: Workload, variant: Variant) -> tuple[str, Counter[str]]:
    """The markdown of one export, and its histogram."""
    path = workload.onnx_path(variant)
    model = onnx.load(path, load_external_data=False)
    histogram = Counter(qualified(node) for node in nodes(model.graph))
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
    lines = [
        f"### {workload.name} / {variant}",
        f"`{path}` ({sum(f.stat().st_size for f in path.parent.iterdir()) / 1e6:.1f} MB), IR {model.ir_version}, "
        f"opset {opsets}, {histogram.total()} nodes, {len(model.functions)} functions",
        f"- inputs: {signature(model.graph.input)}",
        f"- outputs: {signature(model.graph.output)}",
        "- " + ", ".join(f"{op} {count}" for op, count in histogram.most_common()),
        "",
    ]
    return "\n".join(lines), histogram


def attributes(workload: Workload, variant: Variant) -> dict[str, set[str]]:
    """Operator -> names of the attributes it carries in this export."""
    found: dict[str, set[str]] = {}
    model = onnx.load(workload.onnx_path(variant), load_external_data=False)
    for node in nodes(model.graph):
        found.setdefault(qualified(node), set()).update(attribute.name for attribute in node.attribute)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="all")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    options = parser.parse_args()
    variants = options.variants.split(",")
    chosen = [(w, v) for w in select(options.workloads) for v in w.variants if v in variants]

    sections, where, carried = [], dict[str, set[str]](), dict[str, set[str]]()
    for workload, variant in chosen:
        text, histogram = section(workload, variant)
        sections.append(text)
        for op in histogram:
            where.setdefault(op, set()).add(workload.name)
        for op, names in attributes(workload, variant).items():
            carried.setdefault(op, set()).update(names)

    print(f"## All {len(where)} operators\n\n| operator | attributes | workloads |\n|---|---|---|")
    for op in sorted(where):
        print(f"| {op} | {', '.join(sorted(carried[op]))} | {', '.join(sorted(where[op]))} |")
    print("\n## Models\n")
    print("\n".join(sections))


if __name__ == "__main__":
    main()
