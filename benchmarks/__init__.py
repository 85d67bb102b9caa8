"""Benchmarks: twelve workloads, timed side by side with plain `jax.jit` and ONNX Runtime. See `workloads`."""
