"""Hostile inputs: mutators that know the structure of models and IR texts, and a harness that counts.

Each mutator takes a `random.Random`, so that a seed names a mutation, and says what it did, so that counts and
failures can be read. `run` holds any reader of input to the promise that it ends in a result or in one GcompError.
`gcomp fuzz --what files` feeds what they make to the frontends.
"""

from gcomp.testing.mutate.harness import Case, Failure, Tally, run

__all__ = ["Case", "Failure", "Tally", "run"]
