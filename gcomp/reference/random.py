"""Random numbers: as pure functions of a state, or of how many draws the run has made before."""

from __future__ import annotations

from collections.abc import Sequence

from gcomp.ir import stablehlo as hlo
from gcomp.reference.numpy import movement, random
from gcomp.reference.table import Scope, Value, meaning


@meaning(hlo.RngBitGeneratorOp)
def rng_bit_generator(op: hlo.RngBitGeneratorOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """The next state, and bits."""
    output = op.results[1]
    algorithm = op.value("rng_algorithm")
    return random.rng_bit_generator(
        args[0], rng_algorithm=algorithm, shape=scope.shape(output), dtype=scope.dtype(output)
    )


@meaning(hlo.RngOp)
def rng(op: hlo.RngOp, args: Sequence[Value], scope: Scope) -> Sequence[Value]:
    """Numbers that differ from draw to draw and are the same in each run."""
    shape, distribution = movement.sizes(args[2]), op.value("rng_distribution")
    return (random.rng(args[0], args[1], shape=shape, rng_distribution=distribution, seed=scope.draw()),)
