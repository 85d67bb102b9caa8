"""Mistakes in the text that XLA is given, in plans, and in what runs them."""

from __future__ import annotations

from functools import partial

from tests.mutants.edits import right as _right
from tests.mutants.edits import wrong as _wrong

wrong = partial(_wrong, target="xla")
right = partial(_right, target="xla")

EXPORT, PRINTER = "lowering.xla.export", "lowering.xla.printer"
ELEMENTS, EXECUTOR = "ir.elements", "runtime.xla.executor"

# ---- the text of ops ----

wrong(
    "export-drops-comparison-type", classes=(7, 9, 38), about="TOTALORDER is not written: floats compare as IEEE does",
    edits=[(f"{EXPORT}:_compare", '"compare_type" in op.properties',
            '"compare_type" in op.properties and _plain(op, "compare_type") != "TOTALORDER"')],
)  # fmt: skip
wrong(
    "export-window-reversal-dropped", classes=(27, 38), about="the reversal of a kernel is not written",
    edits=[(f"{PRINTER}:Printer.properties", "for k, v in properties.items()]",
            "for k, v in properties.items() if k != 'window_reversal']")],
)  # fmt: skip


# ---- constants ----

wrong(
    "constants-nan-is-canonical", classes=(6, 17), about="constants that are NaN lose their payload",
    edits=[(f"{ELEMENTS}:_float", "bits = int.from_bytes(np.asarray(value)",
            "bits = int.from_bytes(np.asarray(value if number == number else np.nan).astype(value.dtype)")],
)  # fmt: skip

# ---- sizes ----

wrong(
    "sizes-narrowed", classes=(20, 21), about="sizes as values are written modulo 16",
    edits=[(f"{EXPORT}:_dim", "{hole(cast(DimOp, op).formula)}", "{hole(cast(DimOp, op).formula % 16)}")],
)  # fmt: skip
wrong(
    "data-dependent-sizes-not-bound", classes=(39, 40), about="a size that data decide stays that of the first call",
    edits=[("runtime.hosting:_bind_result", "env.update(dims.bind(places, signature.ranges))",
            "env.update(signature.__dict__.setdefault('_late', dims.bind(places, signature.ranges)))")],
)  # fmt: skip

# ---- correct changes ----

right(
    "executables-by-all-sizes", about="executables are kept by names and values",
    edits=[(f"{EXECUTOR}:Segment.executable", "tuple([env[s] for s in self._symbols])",
            "tuple([(s, env[s]) for s in self._symbols])")],
)  # fmt: skip
