"""Matrix products."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from xdsl.ir import SSAValue

from gcomp.dtypes import is_float
from gcomp.frontends.onnx.engine.context import NodeContext
from gcomp.frontends.onnx.engine.registry import Results, imports
from gcomp.ir import stablehlo as hlo
from gcomp.ir.attributes import DotDimensions
from gcomp.ir.types import rank_of, shape_of

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")
"""A term of an equation of Einsum."""


@imports("MatMul")
def matmul(ctx: NodeContext) -> Results:
    """MatMul: NumPy's."""
    if not ctx.rank() or not ctx.rank(1):
        ctx.invalid("an input has rank 0", "vectors or matrices are expected")
    return [ctx.matmul(ctx[0], ctx[1])]


@imports("Gemm", since=7)
def gemm(ctx: NodeContext) -> Results:
    """Gemm: `alpha * A @ B + beta * C`, A and B transposed on request."""
    b = ctx.b
    if ctx.rank() != 2 or ctx.rank(1) != 2:
        ctx.invalid(f"its inputs have ranks {ctx.rank()} and {ctx.rank(1)}", "matrices are expected")
    alpha, beta = ctx.number("alpha", 1.0), ctx.number("beta", 1.0)
    if is_float(ctx.element()):
        return [_gemm(ctx, ctx.operands(), alpha, beta)]
    if not (math.isfinite(alpha) and math.isfinite(beta)):
        ctx.invalid(f"alpha is {alpha} and beta {beta}", "integers are expected to be scaled by finite numbers")
    if alpha == int(alpha) and beta == int(beta):
        return [_gemm(ctx, ctx.operands(), alpha, beta)]
    # Scaled by fractions the sum is one, too; it truncates at the end, as the reference evaluator's does.
    wide = [b.convert(x, "f64") for x in ctx.operands()]
    return [b.convert(_gemm(ctx, wide, alpha, beta), ctx.element())]


def _gemm(ctx: NodeContext, operands: Sequence[SSAValue], alpha: float, beta: float) -> SSAValue:
    b = ctx.b
    contracted = ((0 if ctx.flag("transA") else 1,), (1 if ctx.flag("transB") else 0,))
    x, y = ctx.match_dims(operands[0], contracted[0][0], operands[1], contracted[1][0])
    result = b.dot(x, y, DotDimensions((), (), *contracted))
    if alpha != 1:
        result = b.scale(result, alpha)
    if len(operands) < 3 or beta == 0:
        return result
    bias = operands[2] if beta == 1 else b.scale(operands[2], beta)
    return b.add(result, b.broadcast_to(bias, shape_of(result)))


@imports("Einsum")
def einsum(ctx: NodeContext) -> Results:
    """Einsum: one pair of operands after the other; repeated letters take diagonals."""
    equation = ctx.string("equation").replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ctx.values):
        ctx.invalid(f"the equation has {len(terms)} terms", f"the node has {len(ctx.values)} inputs")
    operands = [_label(ctx, t, v) for t, v in zip(terms, ctx.operands(), strict=True)]
    dots = max((sum(1 for c in labels if c.isdigit()) for labels, _ in operands), default=0)
    ellipsis = "".join(map(str, range(10 - dots, 10)))
    if arrow and not _TERM.fullmatch(output):
        ctx.invalid(f"the equation has the result {output!r}", "letters are expected, and at most one ellipsis")
    if arrow:
        result = output.replace("...", ellipsis)
    else:
        letters = [c for labels, _ in operands for c in labels if not c.isdigit()]
        result = ellipsis + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    labels, value = _without_repeats(ctx, *operands[0])
    for i, other in enumerate(operands[1:], start=1):
        later = result + "".join(t for t, _ in operands[i + 1 :])
        labels, value = _contract(ctx, (labels, value), _without_repeats(ctx, *other), later)
    return [_arrange(ctx, labels, value, result)]


def _label(ctx: NodeContext, term: str, x: SSAValue) -> tuple[str, SSAValue]:
    """A term with its ellipsis spelled out: dims under it are digits, the last one always 9."""
    if not _TERM.fullmatch(term):
        ctx.invalid(f"the equation has the term {term!r}", "letters are expected, and at most one ellipsis")
    named = len(term.replace("...", ""))
    hidden = rank_of(x) - named
    if hidden < 0 or (hidden and "..." not in term) or hidden > 10:
        ctx.invalid(f"the term {term!r} names {named} dims", f"its input has rank {rank_of(x)}")
    return term.replace("...", "".join(map(str, range(10 - hidden, 10)))), x


def _without_repeats(ctx: NodeContext, labels: str, x: SSAValue) -> tuple[str, SSAValue]:
    """A term whose repeated letters are one: the diagonal."""
    b = ctx.b
    for letter in sorted(set(labels)):
        while labels.count(letter) > 1:
            first = labels.index(letter)
            second = labels.index(letter, first + 1)
            x = ctx.restate(x, {second: shape_of(x)[first]})
            shape = shape_of(x)
            same = b.compare(b.iota(shape, first), b.iota(shape, second), "EQ")
            x = b.reduce(hlo.AddOp, b.select(same, x, ctx.b.scalar_like(x, 0)), [second])
            labels = labels[:second] + labels[second + 1 :]
    return labels, x


def _contract(
    ctx: NodeContext, left: tuple[str, SSAValue], right: tuple[str, SSAValue], later: str
) -> tuple[str, SSAValue]:
    """Two terms as one: letters that nothing later needs are summed over."""
    b = ctx.b
    (a, x), (c, y) = _sum(ctx, *left, right[0] + later), _sum(ctx, *right, left[0] + later)
    shared = [s for s in a if s in c]
    kept = [s for s in shared if s in later]
    gone = [s for s in shared if s not in later]
    x, y = _broadcast_shared(ctx, (a, x), (c, y), shared)
    dimensions = DotDimensions(
        tuple(a.index(s) for s in kept),
        tuple(c.index(s) for s in kept),
        tuple(a.index(s) for s in gone),
        tuple(c.index(s) for s in gone),
    )
    labels = [*kept, *(s for s in a if s not in shared), *(s for s in c if s not in shared)]
    return "".join(labels), b.dot(x, y, dimensions)


def _broadcast_shared(
    ctx: NodeContext, left: tuple[str, SSAValue], right: tuple[str, SSAValue], shared: Sequence[str]
) -> tuple[SSAValue, SSAValue]:
    (a, x), (c, y) = left, right
    wide_x, wide_y = list(shape_of(x)), list(shape_of(y))
    for s in shared:
        size = ctx.b.broadcast_shape((wide_x[a.index(s)],), (wide_y[c.index(s)],))[0]
        wide_x[a.index(s)] = wide_y[c.index(s)] = size
    return ctx.b.broadcast_to(x, wide_x), ctx.b.broadcast_to(y, wide_y)


def _sum(ctx: NodeContext, labels: str, x: SSAValue, needed: str) -> tuple[str, SSAValue]:
    axes = [i for i, s in enumerate(labels) if s not in needed]
    if not axes:
        return labels, x
    return "".join(s for s in labels if s in needed), ctx.b.reduce(hlo.AddOp, x, axes)


def _arrange(ctx: NodeContext, labels: str, x: SSAValue, result: str) -> SSAValue:
    labels, x = _sum(ctx, labels, x, result)
    if sorted(labels) != sorted(result):
        ctx.invalid(f"the result {result!r} does not fit", f"the terms leave {labels!r}")
    return ctx.b.transpose(x, [labels.index(s) for s in result])
