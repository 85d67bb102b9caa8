"""Mistakes in putting functions in the place of their calls."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

HERE, COPY = "passes.graph.inline", "passes.inlining"
called = partial(edits.wrong, target="inline")

called(
    "call-returns-the-operand", classes=(33, 37), about="a call is replaced by its first operand of the result's type",
    edits=[(f"{COPY}:inline_function", "old.replace_all_uses_with(new)",
            "old.replace_all_uses_with(next((v for v in op.operands if v.type == old.type), new))")],
)  # fmt: skip
edits.right(
    "call-last-first", "inline", about="the last call of a function is opened first",
    edits=[(f"{HERE}:Inline.run", "for call in _calls(function):", "for call in _calls(function)[::-1]:")],
)  # fmt: skip
