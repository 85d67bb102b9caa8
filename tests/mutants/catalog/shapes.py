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
wrong(
    "static-pad-without-gaps",
    classes=(23, 38),
    about="the gaps of a pad are taken for more edge at the end",
    edits=[
        (
            f"{HERE}:StaticSizes.rewrite",
            "b.pad(op.operands[0], op.operands[1], known[0], known[1], known[2])",
            "b.pad(op.operands[0], op.operands[1], known[0], "
            "[h + g * max(s - 1, 0) for h, g, s in zip(known[1], known[2], op.operands[0].type.get_shape())], "
            "[0 for _ in known[2]])",
        )
    ],
)
wrong(
    "static-slice-from-start",
    classes=(23, 39),
    about="a slice with constant limits starts at 0 where as many elements are left",
    edits=[
        (
            f"{HERE}:StaticSizes.rewrite",
            "b.slice(op.operands[0], known[0], known[1], known[2])",
            "b.slice(op.operands[0], [0] * len(known[0]), [b_ - a for a, b_ in zip(known[0], known[1])], known[2])",
        )
    ],
)
wrong(
    "static-slice-strides-lost",
    classes=(23, 38),
    about="a stride of a slice is lost where one element is left anyway, or two",
    edits=[
        (
            f"{HERE}:StaticSizes.rewrite",
            "b.slice(op.operands[0], known[0], known[1], known[2])",
            "b.slice(op.operands[0], known[0], [a + -(-(b_ - a) // s) for a, b_, s in zip(*known)], [1 for _ in "
            "known[2]])",
        )
    ],
)
wrong(
    "static-iota-first-dimension",
    classes=(20, 38),
    about="an iota of constant sizes counts along its first dimension",
    edits=[(f"{HERE}:StaticSizes.rewrite", 'iota_dimension=op.value("iota_dimension")', "iota_dimension=0")],
)
wrong(
    "static-broadcast-in-order",
    classes=(4, 38),
    about="a broadcast to constant sizes sorts where dims go",
    edits=[
        (
            f"{HERE}:StaticSizes.rewrite",
            'op.value("broadcast_dimensions"))]',
            'sorted(op.value("broadcast_dimensions")))]',
        )
    ],
)
wrong(
    "infer-prefers-unknown",
    classes=(39,),
    about="of two types the one that knows less wins",
    edits=[(f"{HERE}:more_precise", 'a if "_" in dims.symbols_of(b) else b', 'b if "_" in dims.symbols_of(b) else a')],
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
right(
    "infer-rounds-again",
    about="inference runs once more when nothing changed any more",
    edits=[
        (
            f"{HERE}:InferShapes.run",
            "        if not again:\n            return changed",
            "        if not again:\n            for function in program.functions():\n                "
            "_infer_block(function.body.block)\n            return changed",
        )
    ],
)

inlined(
    "inline-arguments-reversed",
    classes=(38,),
    about="operands of one type reach the parameters in the opposite order",
    edits=[
        (
            f"{COPY}:inline_function",
            "zip(function.body.block.args, op.operands, strict=True)",
            "zip(function.body.block.args, op.operands if len({v.type for v in op.operands}) > 1 else "
            "list(op.operands)[::-1], strict=True)",
        )
    ],
)
inlined(
    "inline-results-reversed",
    classes=(37,),
    about="results of one type are handed on in the opposite order",
    edits=[
        (
            f"{COPY}:inline_function",
            "zip(op.results, results, strict=True)",
            "zip(op.results, results if len({v.type for v in results}) > 1 else list(results)[::-1], strict=True)",
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
    "inline-first-result-only",
    classes=(37,),
    about="every result of a composite takes the first value of its type",
    edits=[
        (
            f"{COPY}:inline_function",
            "        old.replace_all_uses_with(new)",
            "        old.replace_all_uses_with(next(v for v in results if v.type == new.type))",
        )
    ],
)
inlined(
    "inline-entry-only",
    classes=(41,),
    about="composites in branches and loops are passed over",
    edits=[
        (
            f"{INLINE}:InlineComposites.run",
            "for op in program.ops() if isinstance(op, hlo.CompositeOp)",
            "for op in program.block.ops if isinstance(op, hlo.CompositeOp)",
        ),
        (f"{INLINE}:InlineComposites.run", "        changed = True", "        changed = bool(pending)"),
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
    "inline-first-first",
    about="composites are inlined from the first one on",
    edits=[(f"{INLINE}:InlineComposites.run", "pending.pop()", "pending.pop(0)")],
)
fine(
    "inline-before-next",
    about="copies are placed after the composite's predecessor",
    edits=[
        (
            f"{INLINE}:InlineComposites.run",
            "location = named(op.composite_name, op.location)",
            "location = op.location",
        )
    ],
)
