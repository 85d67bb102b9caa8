"""What runs a compiled artifact: reading it, checking it, planning and executing its segments.

`gcomp.load` needs nothing else of gcomp: no xDSL, no frontend.
"""
