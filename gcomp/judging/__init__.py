"""Answers of a target held to the reference: what may differ by rounding, what in known ways, and what is wrong."""
