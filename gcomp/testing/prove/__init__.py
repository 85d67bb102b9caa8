"""Independent proof of rewrite rules: an obligation from the very object that the compiler executes, and a solver.

    from gcomp.testing.prove import prove
    print(prove(rule))

For every left side that the rule may meet (ranks 0 to 4, every permutation and list of dimensions, symbolic sizes,
every element type), gcomp's own matcher and builder make the program before and after, and z3 is asked whether the two
can differ. Data movement is index functions over tensors of which nothing is known; scalars are exact bit-vector and
floating-point arithmetic; types with at most 16 bits of inputs are also run whole through the reference.
"""

from __future__ import annotations

from gcomp.ir.rules import Rule
from gcomp.testing.prove.proof import Proof, Status, fingerprint

__all__ = ["Proof", "Status", "fingerprint", "prove"]


def prove(rule: Rule, seconds: float = 20.0, max_rank: int = 4) -> Proof:
    """What can be said of a rule within `seconds` of processor time, for values of ranks up to `max_rank`.

    UsageError where the solver is not installed.
    """
    from gcomp.testing.prove.prover import prove as search

    return search(rule, seconds, max_rank)
