"""Proofs of sharding rules, for all sizes, numbers of parts and devices.

    from gcomp.testing.prove.sharding import prove_rule
    print(prove_rule(op))

**The theorem.** Let an op have a rule, and let f be a factor of it that is local: pass-through or reduction. Cut f into
n >= 1 parts of m >= 1 indices each. The part of a tensor that device s has (0 <= s < n) is, along a dimension with f,
what f's digit says: if f is the major factor, the indices from s*b on, b of them, where b is the part's size. Then for
every device s and every index i of the part's result:

- pass-through: the op on the parts of its operands has at i what the whole op has at i's place, which is i with s*b
  added along the dimensions of the result that have f (in a result without f: at i, the same on all devices);
- reduction: the terms that the devices fold at i are those that the whole op folds at i, each on exactly one device;
  what the devices have, combined by `combine`, is what the whole has: of floats, up to the order of the sum.

Only factors that are the major one of each dimension are cut (`ShardingRule.is_cuttable`): one that is minor is cut
after the major one, into single indices, when it is the major one itself.

Several factors are cut one after the other: the part is an op of the same class, with a rule of its own.

**The proof.** `family` makes the op in symbolic sizes, and its part by the class of the partitioner (`Part`); both are
verified, and the rule is the table's for that op. `obligations` compares their indexing maps: at i, the part must
read the same elements, under the same conditions, as the whole at i's place. `laws` says that nothing goes into an
element that differs between devices. z3 shows that the opposite has no model. `lemmas` are of no single op: that
parts hold each index once, that combiners take terms in any order, and what a quotient of a quotient is.

**What it rests on.** The maps, which `gcomp fuzz --what indexing` and tests/property/test_indexing.py hold to the
reference, and the laws, which tests/property/test_sharding_laws.py does. Where elements are told by data, the part does
what `gcomp.partitioning.lookup` says of indices, here in z3's integers and there in a program; that a part of an iota
counts from where it begins is restated. Indices of a program are 64 bits wide, those of proofs are any.
"""

from __future__ import annotations

from xdsl.ir import Operation

from gcomp.partitioning import ShardingRule
from gcomp.testing.prove.proof import Proof, Status

EFFORT = 4_000_000
"""In the solver's own unit, some seconds' worth: unlike time, the same on every machine."""

__all__ = ["Proof", "Status", "prove_rule"]


def prove_rule(op: Operation, twin: ShardingRule | None = None, effort: int = EFFORT) -> Proof:
    """What can be said of an op's rule in the table, or of a twin in its place: of all ops of this kind, whatever sizes
    the factors of the rule have. `cases` counts the factors that were looked at.

    `effort` bounds the solver for each obligation. UsageError where the solver is not installed.
    """
    from gcomp.testing.prove.sharding.prover import prove

    return prove(op, twin, effort)
