"""How much memory XLA takes on each device for a partitioned program, predicted from its ops.

`graph` writes a program as XLA rewrites it, with copies where ops want another order of elements; `fusion` says what
is computed again where it is read, and lies nowhere; `places` says when each other result is there, and where.
"""

from gcomp.partitioning.memory.predicted import predicted_memory

__all__ = ["predicted_memory"]
