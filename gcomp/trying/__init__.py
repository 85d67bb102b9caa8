"""`gcomp try`: is a pass correct, what does it change in real models, and is it worth it?"""
