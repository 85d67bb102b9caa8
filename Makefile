# Two commands do everything on a machine with Python 3.11 or newer (pip and venv), git and make:
#   make demo    set up, then compile a real model, run it and measure it
#   make test    set up, then lint, type-check and test
# make quick looks at a change in less than a minute: lint, the types of what changed, a test of every room.
# make conformance runs the whole of ONNX's own test suite, beside ONNX Runtime, and renews docs/generated/onnx_coverage.md.
# make mutants kills named miscompilations on five seeds, and renews docs/generated/mutants.md; make suite-mutants does so with
# random changes of the passes' source, and docs/generated/suite_mutants.md; make automatic-mutants asks the commands of gcomp about
# random changes of all that transforms, with new seeds, and renews docs/generated/automatic_mutants.md; make published-bugs asks
# them about bugs of other compilers, and renews docs/generated/published_bugs.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test quick check lint types unit sweep conformance mutants suite-mutants automatic-mutants published-bugs setup clean

demo: setup
	$(BIN)/python examples/digits/demo.py

# Types and tests side by side: pyright runs on one core.
test: setup lint
	$(MAKE) --no-print-directory -j 2 types unit

quick: setup
	$(BIN)/python -m tools.quick

check: test

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	# As pip does for what it copies: read as text, gcomp's modules take longer to load than a small model to compile.
	$(BIN)/python -m compileall -q gcomp
	touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/pyright

unit: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

sweep: setup
	GCOMP_SWEEP=1 $(BIN)/python -m pytest -n auto --dist worksteal -m slow -vv
	GCOMP_SWEEP=1 $(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' tests/property tests/unit/test_mutated_*.py

conformance: setup
	$(BIN)/python -m tests.conformance.run --write

mutants: setup
	$(BIN)/python -m tests.mutants.run --seeds 5 --write

suite-mutants: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutation]'
	$(BIN)/python -m tests.mutants.automatic --sample 300 --jobs 2 --write

automatic-mutants: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[mutation]'
	$(BIN)/python -m tests.mutants.front_doors --sample 30 --seeds 3 --jobs 2 --write

published-bugs: setup
	$(BIN)/python -m tests.mutants.published --jobs 2 --write

clean:
	rm -rf $(VENV) build dist *.egg-info
