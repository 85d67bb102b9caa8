"""Importers of ai.onnx.ml: operators that prepare features."""
