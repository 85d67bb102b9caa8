"""Transformations to programs that compute something else: not for pipelines of targets, but for `gcomp opt -p`."""
