"""Passes on kernels in memory: their order, and the places of what they write."""
