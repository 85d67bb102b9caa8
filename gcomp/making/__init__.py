"""`gcomp new`: the files that a change of a kind needs, filled in so that their tests pass at once."""
