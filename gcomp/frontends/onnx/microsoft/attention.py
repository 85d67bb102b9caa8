"""Importers of com.microsoft: attention and rotary embedding."""
