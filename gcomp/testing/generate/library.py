"""Calls of LAPACK, as frontends make them, for passes that look for what a library computes."""

from __future__ import annotations

from gcomp.ir import lapack
from gcomp.ir.types import tensor
from gcomp.testing.generate.growth import Growth
from gcomp.testing.generate.passes import seeks


@seeks("library-to-host", weight=4)
def factorization(g: Growth) -> None:
    """A factorization of matrices, of one routine or another; what it says of success is kept, too."""
    choices = g.choices
    batch = tuple(choices.chosen((2, 1, 3)) for _ in range(choices.chosen((0, 1, 0))))
    n, text = choices.chosen((2, 3, 1)), choices.chosen(("f32", "f64", "complex<f32>"))
    type = tensor((*batch, n, n), text)
    a = g.of_type(type)
    vector = tensor((*batch, n), text)
    pivots = tensor((*batch, n), "i32")
    info = lapack.status(batch)
    match choices.chosen(("potrf", "getrf", "geqrf")):
        case "potrf":
            letter = choices.chosen(("L", "U"))
            results = lapack.call(g.b, "potrf", [a], [type, info], {0: 0}, uplo=letter)
        case "getrf":
            results = lapack.call(g.b, "getrf", [a], [type, pivots, info], {0: 0})
        case _:
            results = lapack.call(g.b, "geqrf", [a], [type, vector], {0: 0})
    for result in results:
        g.keep(result)
