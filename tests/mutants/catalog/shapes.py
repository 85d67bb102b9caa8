"""Mistakes in infer-shapes and inline-composites."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

wrong = partial(edits.wrong, target="infer-shapes")
right = partial(edits.right, target="infer-shapes")
inlined = partial(edits.wrong, target="inline-composites")
fine = partial(edits.right, target="inline-composites")

HERE, INLINE = "passes.graph.infer_shapes", "passes.graph.inline_composites"
COPY = "passes.inlining"

wrong(
    "static-pad-low-and-high-swapped",
    classes=(23, 38, 39),
    about="the edges of a pad change places where they may (ORT#11870)",
    edits=[
        (
            f"{HERE}:StaticSizes.rewrite",
            "b.pad(op.operands[0], op.operands[1], known[0], known[1], known[2])",
            "b.pad(op.operands[0], op.operands[1], known[1], known[0], known[2])",
        )
    ],
)

right(
    "infer-calls-first",
    about="calls take their callees' types before anything else",
    edits=[
        (
            f"{HERE}:InferShapes.run",
            "again = apply_rewrites(program, (StaticSizes(),), context)",
            "again = _update_calls(program)\n        again |= apply_rewrites(program, (StaticSizes(),), context)",
        )
    ],
)

inlined(
    "inline-changes-the-function",
    classes=(42,),
    about="a function's body is changed when it is inlined, so that the next copy is another",
    edits=[
        (
            f"{COPY}:inline_function",
            "    Rewriter.erase_op(op)\n",
            "    Rewriter.erase_op(op)\n    first = function.body.block.first_op\n    "
            "if len(first.operands) == 2 and first.results and first.operands[0].type == first.operands[1].type:\n   "
            "     "
            "first.operands = list(first.operands)[::-1]\n",
        )
    ],
)
inlined(
    "inline-returned-arguments-lost",
    classes=(33, 37),
    about="a decomposition that returns a parameter returns its first operand",
    edits=[
        (
            f"{COPY}:inline_function",
            "results = [mapping.get(v, v) for v in source.operands]",
            "results = [op.operands[0] if v in function.body.block.args and v.type == op.operands[0].type else "
            "mapping.get(v, v) for v in source.operands]",
        )
    ],
)

fine(
    "inline-before-next",
    about="copies are placed after the composite's predecessor",
    edits=[
        (
            f"{INLINE}:InlineComposites.run",
            "location = named_location(op.composite_name, op.location)",
            "location = op.location",
        )
    ],
)
