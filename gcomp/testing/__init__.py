"""Shipped tools for testing compilers of graphs: second opinions (oracles), generators, checks of single passes."""
