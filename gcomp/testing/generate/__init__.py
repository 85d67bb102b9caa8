"""Random programs and inputs for them: over the whole op set, at the edges, and around the rules that passes apply.

    program = random_program(Seeded(7))              # bulk runs: a millisecond
    inputs = inputs_for(program, 7)
    @given(programs())                               # Hypothesis: the same generator, and shrinking
    random_matching(known_rules()["select-same"], Seeded(7))

A step (`growth.step`) is one way to make a program grow; each family of ops has a file of them. What answers a
generator's questions is in `choices`.
"""
