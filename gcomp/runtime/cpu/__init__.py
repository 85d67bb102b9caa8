"""Runs models that were compiled to machine code of processors, with NumPy and the standard library alone."""
