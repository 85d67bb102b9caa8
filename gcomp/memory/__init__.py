"""Memory planning as a pure problem: offsets for buffers with lifetimes, and an order of nodes with a low peak.

Nothing here knows of the IR: a pass builds a `Problem` from liveness, or a `Graph` from a program, and reads the
answer back.
"""
