"""Tensors that run at once or are traced, and how an operation of theirs is defined (`gcomp.ops` has them all)."""
