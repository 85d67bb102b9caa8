"""Importers of linear algebra: determinants."""
