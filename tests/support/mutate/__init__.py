"""Mutators of artifacts, as those of models and texts (`gcomp.testing.mutate`)."""
