"""Mistakes in putting functions in the place of their calls."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

HERE, COPY = "passes.graph.inline", "passes.inlining"
called = partial(edits.wrong, target="inline")

called(
    "call-arguments-reversed", classes=(38,), about="operands of one type reach the parameters in the opposite order",
    edits=[(f"{COPY}:inline_function", "zip(function.body.block.args, op.operands, strict=True)",
            "zip(function.body.block.args, op.operands if len({v.type for v in op.operands}) > 1 else "
            "list(op.operands)[::-1], strict=True)")],
)  # fmt: skip
called(
    "call-callers-first", classes=(41,), about="a function is copied before what it calls is in it",
    edits=[(f"{HERE}:callees_first", "return list(ordered.values())", "return list(ordered.values())[::-1]")],
)  # fmt: skip
called(
    "call-first-operand-for-all", classes=(38,), about="parameters of one type all stand for the first operand of it",
    edits=[(f"{COPY}:inline_function", "zip(function.body.block.args, op.operands, strict=True)",
            "((a, next(v for v in op.operands if v.type == a.type)) for a in function.body.block.args)")],
)  # fmt: skip
called(
    "call-changes-the-function", classes=(42,), about="a function's body is used up by the first call of it",
    edits=[(f"{COPY}:inline_function", "    Rewriter.erase_op(op)\n",
            "    Rewriter.erase_op(op)\n    first = function.body.block.first_op\n    "
            "if len(first.operands) == 2 and first.results and first.operands[0].type == first.operands[1].type:\n   "
            "     "
            "first.operands = list(first.operands)[::-1]\n")],
)  # fmt: skip
called(
    "call-returns-the-operand", classes=(33, 37), about="a call is replaced by its first operand of the result's type",
    edits=[(f"{COPY}:inline_function", "old.replace_all_uses_with(new)",
            "old.replace_all_uses_with(next((v for v in op.operands if v.type == old.type), new))")],
)  # fmt: skip
edits.right(
    "call-last-first", "inline", about="the last call of a function is opened first",
    edits=[(f"{HERE}:Inline.run", "for call in _calls(function):", "for call in _calls(function)[::-1]:")],
)  # fmt: skip
