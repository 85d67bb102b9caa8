"""What ops mean: executable semantics and the definition of a correct rewrite."""
