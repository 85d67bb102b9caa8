"""Running plans with XLA, through JAX's PJRT client. No other part of the runtime imports jax."""
