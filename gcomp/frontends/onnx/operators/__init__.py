"""Importers of operators, a file for each family."""
