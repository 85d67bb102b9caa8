"""Importers of optionals, resolved while the model is imported."""
