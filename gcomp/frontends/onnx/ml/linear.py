"""Importers of ai.onnx.ml: linear models and support vector machines."""
