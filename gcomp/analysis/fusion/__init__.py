"""What a kernel would be made of, whether it may be, and what it would cost: questions that the fusion pass asks."""
