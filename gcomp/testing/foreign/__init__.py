"""What is written for others: ONNX nodes, JAX functions and torch functions, with inputs, to be imported and judged."""
