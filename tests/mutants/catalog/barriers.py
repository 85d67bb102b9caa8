"""Mistakes in what becomes of optimization barriers."""

from __future__ import annotations

from functools import partial

from tests.mutants import edits

DROP = "passes.convert.drop_barriers:Barrier.rewrite"
wrong = partial(edits.wrong, target="drop-barriers")
right = partial(edits.right, target="drop-barriers")

wrong(
    "barrier-rotated",
    classes=(38,),
    about="of three results and more of one type, each comes from the operand behind",
    edits=[
        (
            DROP,
            "return list(op.operands)",
            "same = len({str(v.type) for v in op.operands}) == 1 and len(op.operands) > 1\n    "
            "return [*op.operands[1:], op.operands[0]] if same else list(op.operands)",
        )
    ],
)
right(
    "barrier-operands-one-by-one",
    about="operands are listed by number",
    edits=[(DROP, "list(op.operands)", "[op.operands[i] for i in range(len(op.results))]")],
)
