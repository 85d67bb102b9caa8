"""Passes that find what a name stands for: composites with their canonical decompositions."""
