"""The executable meaning of every op on NumPy arrays: pure functions, one file per op family, no IR.

A function is named as its StableHLO or CHLO op (`and_`, `not_`, `or_` where Python reserves the name).
Positional arguments are the op's operands; keyword-only arguments are its attributes, named as in the
specification, with plain Python values. Every result is an ndarray (rank 0 included) that the caller owns or
that aliases an operand read-only. Corners that the specification leaves open are decided in
docs/guides/semantics.md.
"""
