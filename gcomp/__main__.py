"""`python -m gcomp` is `gcomp`."""

from gcomp.cli import main

if __name__ == "__main__":
    main()
