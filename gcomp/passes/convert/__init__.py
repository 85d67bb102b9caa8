"""Passes that reshape the graph for a target: layouts, and forms that its compiler runs faster."""
