"""Passes from the graph level to the kernel level."""
