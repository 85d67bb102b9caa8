"""Tile programs: kernels as programs on tiles, which Triton or LLVM prints and the evaluator here runs."""
