"""Small but real architectures, made from seeds: what `gcomp try` asks about a pass, and tests ask about everything."""
