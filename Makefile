# Everything runs in a virtual environment that these targets make themselves.
# PYTHON names the interpreter (3.11 or newer); VENV where the environment goes.
PYTHON ?= $(shell for p in python3.12 python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# What torch is installed from; for a build without CUDA where the default one brings it:
# make test TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH ?= torch==2.13.0
# Processes for the tests: one a core, two on a small machine.
JOBS ?= 2

.PHONY: help demo app test lint unit browser audit fuzz bench fast conformance capacity-table clean

help:
	@echo "make demo    a forecast and its HTML report (makes the environment first)"
	@echo "make app     the what-if app in a browser, at http://localhost:8501"
	@echo "make test    lint, types, import floors and all tests"
	@echo "make audit   the long checks: whole traces, many seeds (minutes)"
	@echo "make fuzz    the fast engine against the reference engine on random scenarios"
	@echo "make bench   timings of this machine, kept in benchmarks/*.csv, and docs/bench/cost.svg"
	@echo "make conformance  exported files before vLLM's and SGLang's own parsers (own environment, 3 GB)"
	@echo "make fast    numba, and the engine compiled: large runs take a tenth of the time"
	@echo "make clean   remove the environment and what was built"

demo: $(VENV)/.run
	$(BIN)/twin simulate chat-h100 --out out/demo

app: $(VENV)/.app
	$(BIN)/twin app

test: lint unit browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Containerfile

unit: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) -m "not audit" --ignore tests/browser

# By themselves: a server and a browser for each process want both cores.
browser: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) tests/browser

audit: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m audit --hypothesis-profile=audit

fuzz: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist worksteal tests/properties/test_engines_agree.py

bench: $(VENV)/.dev
	$(BIN)/python tests/bench/startup.py
	$(BIN)/python -m tests.bench.traces
	$(BIN)/python -m tests.bench.day
	$(BIN)/python -m tests.bench.search
	$(BIN)/python -m tests.bench.app
	$(BIN)/python -m tests.bench.plot

fast: $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[fast]'
	$(BIN)/python -m twin.engine.compiled

conformance: $(VENV)/.dev
	TORCH="$(TORCH)" scripts/conformance.sh .venv-conformance $(BIN)/python

capacity-table: $(VENV)/.dev
	$(BIN)/twin-calibrate capacity $${SERVETWIN_DATA:-../shared/data}/capacity/kv_capacity.csv --markdown docs/capacity.md

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found; set PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV) || { echo "error: $(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv"; exit 2; }

$(VENV)/.run: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.app: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[app,fast]'
	$(BIN)/python -m twin.engine.compiled
	@touch $@ $(VENV)/.run

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,kernels]'
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) .venv-conformance out build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
