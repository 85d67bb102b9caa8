"""Operators as they were before opset 7."""
