"""Derivatives of programs: tangents forward and cotangents backward, by one table of rules for the whole op set.

`table` says what a row is, and each family of ops has a file of them; `sweeps` goes through ops with the table, and
`programs` makes the program of a gradient (`differentiate_back`) or of a directional derivative (`differentiate`).
"""
