# Everything is run from here. Each target first sets up what it needs, in .venv inside the checkout.

BIN := .venv/bin
READY := .venv/.ready
BENCH := .venv-bench/bin
BENCH_READY := .venv-bench/.ready
WORKERS ?= 2
N ?= 2000
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help demo test check lint fuzz bench browser clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(READY)  ## read handwritten digits with a compiled kernel
	@$(BIN)/python examples/digits/demo.py

test: lint browser  ## everything that must hold: lint, types, layers, and all tests
	@$(BIN)/pytest -n $(WORKERS)

check: $(READY)  ## the quick run, under two minutes: ruff and the tests that are not slow
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/pytest -q -n $(WORKERS) -m "not slow"

lint: $(READY)  ## ruff, types (pyright, strict) and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

browser:
	@.ci/browser

fuzz: $(READY)  ## random programs, N of them: every pass, machine, certificate and backend agrees
	@$(BIN)/python tests/properties/fuzz.py $(N) --workers $(WORKERS)

bench: $(BENCH_READY)  ## measure: compile time, tiles, modelled cycles; native code beside NumPy, torch and jax
	@$(BENCH)/python bench/compile_time.py
	@$(BENCH)/python bench/tiling.py
	@$(BENCH)/python bench/model.py
	@$(BENCH)/python bench/forwarding.py
	@$(BENCH)/python bench/first_call.py
	@$(BENCH)/python bench/call.py
	@$(BENCH)/python bench/compaction.py
	@$(BENCH)/python bench/native.py

clean:  ## remove the environment and every cache
	rm -rf .venv .venv-bench build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is made last, so that an installation which was cut short is done again.
$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Tilewright needs Python 3.11 or newer; 'python3' is older or missing." \
		"Install one, or name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Tilewright needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments:" \
		"its venv module is missing. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Setting up .venv (once; again only when pyproject.toml changes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# An environment of its own, so that nobody needs torch and jax to develop. torch.compile needs a C++ compiler with
# OpenMP: where the system has none, both come from pip.
$(BENCH_READY): pyproject.toml bench/requirements.txt
	@test -n "$(PYTHON)" || { echo "Tilewright needs Python 3.11 or newer" >&2; exit 1; }
	@$(BENCH)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-bench
	@echo "Setting up .venv-bench with torch and jax (once; again only when bench/requirements.txt changes)"
	@$(BENCH)/python -m pip install --quiet --disable-pip-version-check -e . -r bench/requirements.txt
	@command -v g++ >/dev/null 2>&1 || bench/compiler $(BENCH)
	@touch $@
