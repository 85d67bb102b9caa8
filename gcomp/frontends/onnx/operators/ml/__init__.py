"""Importers of `ai.onnx.ml`, as far as tensors suffice; one file per family."""
