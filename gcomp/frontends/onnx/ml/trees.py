"""Importers of ai.onnx.ml: tree ensembles."""
