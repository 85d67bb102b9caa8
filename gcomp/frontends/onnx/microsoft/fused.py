"""Importers of com.microsoft: products, convolutions and activations fused with their neighbours."""
