"""What an ONNX model says: files, checks of what they hold, its inputs and types, and what stands for its values."""
