"""Triton: kernels as tile programs and Triton source, compiled without a GPU into plans of cubins."""
