"""Importers of com.microsoft: normalizations with residuals and embeddings."""
