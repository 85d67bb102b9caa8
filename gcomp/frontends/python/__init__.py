"""gcomp's own front doors for models written in Python: one vocabulary of operations, run at once or traced.

`tensor` holds values and `ops` the operations; `eager` runs them op by op, `tracing` builds programs of them.
"""
