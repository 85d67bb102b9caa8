"""Importers of com.microsoft: operators on quantized tensors."""
