"""Passes: one file per pass, each with its law in the first docstring."""
