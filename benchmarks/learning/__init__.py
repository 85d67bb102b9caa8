"""Three networks that learn digits, in JAX and in torch: what `benchmarks.training` trains."""
