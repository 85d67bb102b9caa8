"""The search for shardings: an integer program over the ways to cut each op, with what has to be sent between them.

`plan_of(program, mesh, devices)` gives a plan with its cost, a bound on how far from the best it is, and what each op
sends. docs/guides/sharding_search.md tells how the program is written as a problem, and what the model leaves out.
"""
