"""Importers of sequences, resolved while the model is imported."""
