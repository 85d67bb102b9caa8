"""Mutants of everything that transforms, judged by the front doors alone: the commands that a user has.

python -m tests.mutants.front_doors --sample 30 --seeds 3 --write
"""
