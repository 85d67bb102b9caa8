"""Importers: each turns one kind of model into gcomp's IR. No frontend imports another."""
