"""Complex numbers as pairs of real ones: how each op computes the parts of its results from those of its operands."""
