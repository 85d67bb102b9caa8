"""Runs plans of compiled kernels on NVIDIA GPUs through the driver's own library: no torch, JAX, Triton or toolkit."""
