"""The importer: it walks a model's graph, and knows what its values are, which sizes data determine, and what folds."""
