"""Mistakes in looking into programs: checks that blame the wrong op, and prints that passes lose, merge or move."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

wrong = partial(edits.wrong, target="looking")
right = partial(edits.right, target="looking")

FAILING = "passes.failing"
THREAD = "passes.transform.thread_prints"

# ---- checks ----

wrong(
    "check-blames-who-passes-on", classes=(6, 42), about="an op is at fault whose operand had a NaN already",
    edits=[(f"{FAILING}:Watch._makes", "if isinstance(had, bool):", "if True:"),
           (f"{FAILING}:Watch._makes", "return False if had else made", "return False if had is True else made")],
)  # fmt: skip
wrong(
    "check-index-unsigned-as-signed", classes=(20, 30), about="unsigned indices beyond 2**63 are read as negative ones",
    edits=[(f"{FAILING}:_outside", '"ui64" if dtype_text(x.type) == "ui64" else "i64"', '"i64"'),
           (f"{FAILING}:_outside", 'if dtype_text(x.type) == "i64":', "if False:")],
)  # fmt: skip
right(
    "check-flags-in-another-order", about="operands are asked for their NaN in the opposite order",
    edits=[(f"{FAILING}:Watch._makes", "dict.fromkeys((*op.operands, *captures(op)))",
            "dict.fromkeys((*captures(op), *reversed(op.operands)))")],
)  # fmt: skip

# ---- prints ----

wrong(
    "print-merged", classes=(35, 37), about="cse makes one of two equal prints",
    edits=[("passes.graph.cse:_merge", "op.results and is_side_effect_free(op)",
            '(op.results and is_side_effect_free(op)) or op.name == "gcomp.print"')],
)  # fmt: skip
wrong(
    "print-doubled-by-gradients", classes=(35, 36), about="what is computed again for a derivative prints again",
    edits=[("autodiff.control:copy_ops", "if isinstance(op, PrintOp):", "if False:"),
           ("autodiff.control:copy_ops", "if found else []", "if False else []")],
)  # fmt: skip
wrong(
    "print-threads-from-the-start", classes=(34, 35), about="each print is threaded to the start",
    edits=[(f"{THREAD}:ThreadPrints.run", "_thread(program, op, state[0])", "_thread(program, op, start[0])")],
)  # fmt: skip
