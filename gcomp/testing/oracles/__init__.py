"""Independent second opinions on what a program computes, each in a process of its own.

`stablehlo_cpp` is the StableHLO project's C++ reference interpreter, `xla` is XLA's CPU backend. Both read StableHLO
text and run in a worker process that is reused, and replaced after it crashed or ran out of time.
"""

from __future__ import annotations

from gcomp.testing.oracles.process import OracleFailure, WorkerOracle
from gcomp.testing.oracles.stablehlo_cpp import Oracle
from gcomp.testing.oracles.xla import XlaOracle

__all__ = ["Oracle", "OracleFailure", "WorkerOracle", "XlaOracle"]
