"""Steps of linear algebra, transforms, batch normalization and random numbers."""

from __future__ import annotations

from typing import Any

from gcomp.ir import stablehlo as hlo
from gcomp.ir.types import COMPLEX, FLOATS, dtype_text, rank_of, shape_of, tensor
from gcomp.testing.generate.growth import Growth, step

_FACTORED = frozenset({tensor((), t).element_type for t in ("f32", "f64", "complex<f32>", "complex<f64>")})


def _square(g: Growth) -> tuple[tuple[int, ...], str]:
    batch = tuple(g.choices.chosen((2, 1, 0)) for _ in range(g.choices.chosen((0, 1, 0))))
    size = g.choices.chosen((2, 1, 3, 0))
    return (*batch, size, size), g.text_among(_FACTORED)


@step("cholesky", hlo.CholeskyOp, weight=0.25)
def cholesky(g: Growth) -> None:
    """Mostly of matrices that have no factor."""
    shape, text = _square(g)
    g.emit(hlo.CholeskyOp, g.of_type(tensor(shape, text)), lower=g.choices.flag())


@step("triangular-solve", hlo.TriangularSolveOp, weight=0.25)
def triangular_solve(g: Growth) -> None:
    """From either side, either triangle, transposed or not."""
    choices = g.choices
    (*batch, size, _), text = _square(g)
    left, other = choices.flag(), choices.chosen((1, 2, 0))
    right = (size, other) if left else (other, size)
    a, b = g.of_type(tensor((*batch, size, size), text)), g.of_type(tensor((*batch, *right), text))
    g.emit(hlo.TriangularSolveOp, a, b, types=(b.type,), left_side=left, lower=choices.flag(),
           unit_diagonal=choices.flag(),
           transpose_a=choices.chosen(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))  # fmt: skip


@step("fft", hlo.FftOp, weight=0.3)
def fft(g: Growth) -> None:
    """Forward, backward, of real signals and to them, over one or two dimensions."""
    choices = g.choices
    kind = choices.chosen(("FFT", "IFFT", "RFFT", "IRFFT"))
    real = frozenset({tensor((), t).element_type for t in ("f32", "f64")})
    x = g.pick(real if kind == "RFFT" else COMPLEX, least=1, static=True, empty=False)
    shape = [s for s in shape_of(x) if isinstance(s, int)]
    lengths = shape[-choices.integer(1, min(2, len(shape))) :]
    if kind == "IRFFT":
        lengths[-1] = 2 * (shape[-1] - 1) + choices.integer(0, 1) or 1
    g.emit(hlo.FftOp, x, fft_type=kind, fft_length=lengths)


@step("batch-norm", hlo.BatchNormTrainingOp, hlo.BatchNormGradOp, weight=0.4)
def batch_norm(g: Growth) -> None:
    """Normalization by the batch's own statistics, or its gradient."""
    x = g.pick(FLOATS, least=1, most=4)
    feature = g.choices.integer(0, rank_of(x) - 1)
    vector = tensor((shape_of(x)[feature],), dtype_text(x.type))
    more: dict[str, Any] = {"epsilon": 1e-3, "feature_index": feature}
    if g.choices.flag(0.6):
        vectors = [g.of_type(vector) for _ in range(2)]
        results = g.b.emit_all(hlo.BatchNormTrainingOp, x, *vectors, **more)
    else:
        vectors = [g.of_type(vector) for _ in range(3)]
        results = g.b.emit_all(hlo.BatchNormGradOp, x, *vectors, g.like(x), **more)
    for result in results[::-1]:
        g.keep(result)


@step("random-bits", hlo.RngBitGeneratorOp, weight=0.4)
def random_bits(g: Growth) -> None:
    """Bits from a state; now and then twice from one state, or from the next."""
    state = g.of_type(tensor((2,), "ui64"))
    for _ in range(g.choices.chosen((1, 2))):
        type = tensor(g.shape(static=True, most=3), g.choices.chosen(("ui32", "ui64", "ui8")))
        algorithm = g.choices.chosen(("THREE_FRY", "PHILOX"))
        following, bits = g.b.emit_all(hlo.RngBitGeneratorOp, state, types=(state.type, type), rng_algorithm=algorithm)
        g.keep(bits)
        state = following if g.choices.flag() else state


@step("random-numbers", hlo.RngOp, weight=0.4)
def random_numbers(g: Growth) -> None:
    """Numbers from hidden state, drawn once or twice alike: no two draws are the same, and none may be dropped."""
    text = g.choices.chosen(("f32", "f64", "i32"))
    shape = [s for s in g.shape(static=True, most=3) if isinstance(s, int)]
    kind = "UNIFORM" if text == "i32" or g.choices.flag() else "NORMAL"
    bounds = [g.splat(tensor((), text), number) for number in (0, 1 if text != "i32" else 100)]
    sizes = g.sizes(shape)
    for _ in range(g.choices.chosen((1, 2))):
        g.emit(hlo.RngOp, *bounds, sizes, types=(tensor(shape, text),), rng_distribution=kind)
