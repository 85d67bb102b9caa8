"""Mistakes in the text that XLA is given, in plans, and in what runs them."""

from __future__ import annotations

from functools import partial

from gcomp.lowering.xla.export import WRITERS
from tests.mutants.edits import change
from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong
from tests.mutants.mutant import mutant

wrong = partial(_wrong, target="xla")
right = partial(_right, target="xla")

EXPORT, PRINTER = "lowering.xla.export", "lowering.xla.printer"
LOWER, SEGMENTS = "lowering.xla.lower", "lowering.xla.segments"
SIGNATURES = "lowering.signatures"
ELEMENTS, EXECUTOR, TEMPLATE = "ir.elements", "runtime.xla.executor", "runtime.template"

# ---- the text of ops ----

wrong(
    "export-drops-slice-strides", classes=(23, 38), about="strides of slices are not written where they fit anyway",
    edits=[(f"{EXPORT}:_slice", "if stride != 1 else", "if stride not in (1, 2) else")],
)  # fmt: skip
wrong(
    "export-drops-comparison-type", classes=(7, 9, 38), about="TOTALORDER is not written: floats compare as IEEE does",
    edits=[(f"{EXPORT}:_compare", '"compare_type" in op.properties',
            '"compare_type" in op.properties and _plain(op, "compare_type") != "TOTALORDER"')],
)  # fmt: skip
wrong(
    "export-select-swapped", classes=(38,), about="the branches of a select by one predicate are swapped",
    edits=[(f"{EXPORT}:_select", "{p.values(op.operands)} : {p.types((pred, on_true))}",
            "{p.values(op.operands if shape_of(pred) or not shape_of(on_true) else"
            " [op.operands[i] for i in (0, 2, 1)])}"
            " : {p.types((pred, on_true))}"),
           (f"{EXPORT}:_select", "    pred, on_true, on_false",
            "    from gcomp.ir.types import shape_of\n    pred, on_true, on_false")],
)  # fmt: skip
wrong(
    "export-dot-batch-is-lhs", classes=(5, 38), about="the batching dims of the right operand are those of the left",
    edits=[(f"{EXPORT}:_dot", "[*d.rhs_batching_dimensions]", "[*d.lhs_batching_dimensions]")],
)  # fmt: skip
wrong(
    "export-dot-contracting-sorted", classes=(25, 38), about="contracting dims are written in ascending order",
    edits=[(f"{EXPORT}:_dot", "{[*d.lhs_contracting_dimensions]} x {[*d.rhs_contracting_dimensions]}",
            "{sorted(d.lhs_contracting_dimensions)} x {sorted(d.rhs_contracting_dimensions)}")],
)  # fmt: skip
wrong(
    "export-dilations-swapped", classes=(27, 38), about="the dilations of input and kernel are written for each other",
    edits=[(f"{PRINTER}:Printer.properties", "for k, v in properties.items()]",
            "for k, v in [({'rhs_dilation': 'lhs_dilation'}.get(k, k), v) for k, v in properties.items()]]")],
)  # fmt: skip
wrong(
    "export-window-reversal-dropped", classes=(27, 38), about="the reversal of a kernel is not written",
    edits=[(f"{PRINTER}:Printer.properties", "for k, v in properties.items()]",
            "for k, v in properties.items() if k != 'window_reversal']")],
)  # fmt: skip
wrong(
    "export-padding-sides-swapped", classes=(23, 27), about="low and high edge padding are written for each other",
    edits=[(f"{PRINTER}:Printer.properties", "for k, v in properties.items()]",
            "for k, v in [({'edge_padding_low': 'edge_padding_high',"
            " 'edge_padding_high': 'edge_padding_low'}.get(k, k), v) for k, v in properties.items()]]")],
)  # fmt: skip


@mutant("export-permutation-inverted", "xla", classes=(25, 38), about="a permutation is written as its inverse")
def _() -> None:
    change(
        WRITERS["stablehlo.transpose"],
        "sizes_text(values)",
        "sizes_text([values.index(i) for i in range(len(values))])",
    )


# ---- constants ----

wrong(
    "constants-big-endian-nan", classes=(6, 18), about="the bits of NaN and infinity are written from the highest byte",
    edits=[(f"{ELEMENTS}:_float", '"little")', '"big")')],
)  # fmt: skip
wrong(
    "constants-negative-zero", classes=(9,), about="constants of -0 are written as 0",
    edits=[(f"{ELEMENTS}:_float", "number = float(value)", "number = float(value) + 0.0")],
)  # fmt: skip
wrong(
    "constants-of-double-in-single", classes=(18,), about="f64 constants are written with the digits of f32",
    edits=[(f"{ELEMENTS}:_float", 'if text == "f32" else', 'if text in ("f32", "f64") else')],
)  # fmt: skip
wrong(
    "constants-nan-is-canonical", classes=(6, 17), about="constants that are NaN lose their payload",
    edits=[(f"{ELEMENTS}:_float", "bits = int.from_bytes(np.asarray(value)",
            "bits = int.from_bytes(np.asarray(value if number == number else np.nan).astype(value.dtype)")],
)  # fmt: skip

# ---- weights, outputs, donation ----

wrong(
    "call-weights-sorted", classes=(33, 38), about="calls pass weights by name, callees take them in order of use",
    edits=[(f"{PRINTER}:Printer.with_weights", "[self._weights[name] for name, _ in weights]",
            "[self._weights[name] for name, _ in sorted(weights, key=lambda pair: pair[0])]")],
)  # fmt: skip
wrong(
    "outputs-deduplicated", classes=(37,), about="of a value that is returned twice, the second is the one before it",
    edits=[(f"{EXPORT}:_return", "{p.values(op.operands)}",
            "{p.values([v if v not in list(op.operands)[:i] or op.name != 'func.return' or"
            " op.operands[i - 1].type != v.type else op.operands[i - 1] for i, v in enumerate(op.operands)])}")],
)  # fmt: skip
wrong(
    "host-results-in-order-of-making", classes=(37, 33), about="results of plans with host steps come as they are made",
    edits=[(f"{LOWER}:lower", "draft.numbers[value] for value in program.returned.operands",
            "n for n in sorted(draft.numbers[value] for value in program.returned.operands)")],
)  # fmt: skip
wrong(
    "donation-to-any-output", classes=(32, 33), about="a donated input's memory goes to an output of another type",
    edits=[(f"{SIGNATURES}:match_donations", "(output.dtype, output.shape) == (port.dtype, port.shape)",
            "len(output.shape) == len(port.shape)"),
           (f"{SIGNATURES}:match_donations", "pairs.append((i, k))", "pairs.append((i, max(free)))")],
)  # fmt: skip
wrong(
    "loop-values-swapped", classes=(34,), about="what a loop's body returns is put in place one by one",
    edits=[(f"{EXPORT}:_return", "{p.values(op.operands)}",
            "{p.values(op.operands if op.name == 'func.return' or len(op.operands) < 3 else"
            " [op.operands[0], op.operands[2], *op.operands[2:]])}")],
)  # fmt: skip

# ---- sizes ----

wrong(
    "executables-by-first-symbol", classes=(40,), about="executables are kept by the first symbol's value only",
    edits=[(f"{EXECUTOR}:Segment.executable", "tuple([env[s] for s in self._symbols])",
            "tuple([env[s] for s in self._symbols[:1]])")],
)  # fmt: skip
wrong(
    "executables-by-sum-of-sizes", classes=(40,), about="executables are kept by the number of elements",
    edits=[(f"{EXECUTOR}:Segment.executable", "tuple([env[s] for s in self._symbols])",
            "(sum([env[s] for s in self._symbols]),)"),
           (f"{EXECUTOR}:Segment._check_types", "if expected != compiled:", "if False:")],
)  # fmt: skip
wrong(
    "holes-of-first-value", classes=(40,), about="a hole keeps the number that it was filled with first",
    edits=[(f"{TEMPLATE}:Template._filled", "str(self._value(piece, env, known))",
            "self.__dict__.setdefault(f'_{piece}', str(self._value(piece, env, known)))")],
)  # fmt: skip
wrong(
    "sizes-narrowed", classes=(20, 21), about="sizes as values are written modulo 16",
    edits=[(f"{EXPORT}:_dim", "{hole(cast(DimOp, op).formula)}", "{hole(cast(DimOp, op).formula % 16)}")],
)  # fmt: skip
wrong(
    "late-sizes-not-bound", classes=(39, 40), about="a size that data decide is what it was at the first call",
    edits=[("runtime.hosting:_bind_result", "env.update(dims.bind(places, signature.ranges))",
            "env.update(signature.__dict__.setdefault('_late', dims.bind(places, signature.ranges)))")],
)  # fmt: skip
wrong(
    "lane-ignores-values", classes=(32,), about="a repeated call runs with the arrays of the call before",
    edits=[("runtime.xla.lanes:DispatchedLane.__call__", "self._call(*values, self._weights)",
            "self._call(*self.__dict__.setdefault('_last', tuple(values)), self._weights)")],
)  # fmt: skip
wrong(
    "segment-reads-in-order-of-values", classes=(33, 34), about="a part's inputs are sorted by number",
    edits=[(f"{LOWER}:_Draft._device", "inputs=tuple(self.numbers[v] for v in part.inputs)",
            "inputs=tuple(sorted(self.numbers[v] for v in part.inputs))")],
)  # fmt: skip

# ---- correct changes ----

right(
    "export-generic-dots", about="dots in MLIR's generic form",
    edits=[(f"{EXPORT}:_dot", 'if "algorithm" in op.properties:', "if op.properties:")],
)  # fmt: skip
right(
    "export-strides-always", about="strides are written where they are 1, too",
    edits=[(f"{EXPORT}:_slice", "if stride != 1 else", "if stride != 0 else")],
)  # fmt: skip
right(
    "export-values-from-one", about="values are numbered from 1",
    edits=[(f"{PRINTER}:Printer._function", "self._count = 0", "self._count = 1")],
)  # fmt: skip
right(
    "executables-by-all-sizes", about="executables are kept by names and values",
    edits=[(f"{EXECUTOR}:Segment.executable", "tuple([env[s] for s in self._symbols])",
            "tuple([(s, env[s]) for s in self._symbols])")],
)  # fmt: skip
