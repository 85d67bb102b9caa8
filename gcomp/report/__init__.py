"""Pages that show a compilation: what each pass did, the graph on each level, kernels, memory, times.

A page is one file that needs no network. What it shows is worked out here, layouts included; the script of `assets`
draws what is opened.
"""
