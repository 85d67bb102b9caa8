"""The former name of `python -m tests.conformance.run --engine reference --verbose`."""

from __future__ import annotations

import sys

from tests.conformance.run import main

if __name__ == "__main__":
    sys.argv += ["--engine", "reference", "--verbose"]
    sys.exit(main())
