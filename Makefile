# One door. `make demo` and `make test` do all set-up by themselves; only Python 3.11+ and make are needed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
JOBS   ?= 2
SEED   ?= 1
COUNT  ?= 2000
ENGINE ?= duckdb
TARGET ?= all
SECONDS ?= 60
RUNS   ?= -1

.DEFAULT_GOAL := help
.PHONY: help demo warm-up test check test-all fuzz fuzz-input bench bench-peers bench-disorder bench-out-of-order docs lock sbom clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "streamproof needs Python 3.11 or newer; try: make PYTHON=python3.12")'
	@echo "setting up $(VENV) (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python release/install.py
	@touch $@

demo: $(READY) ## set up, then the tour: queries over a month of earthquakes, live and backfill, a planted bug found
	@$(BIN)/streamproof demo

warm-up: $(READY) ## compile the kernels now, so that no later run waits for it
	@$(BIN)/streamproof warm-up

test: $(READY) ## set up, then every test that takes seconds (CI runs this)
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile -m "not slow"

check: $(READY) ## format, lint, types, layers and the fast tests; under a minute
	@$(BIN)/ruff format --check --quiet . || (echo "run: $(BIN)/ruff format ." && false)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow" tests/events tests/plan tests/query tests/language

test-all: check ## check, every test with the slow ones, the fuzz and the docs
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile
	@$(MAKE) --no-print-directory fuzz ENGINE=duckdb
	@$(MAKE) --no-print-directory fuzz ENGINE=local COUNT=10000
	@$(MAKE) --no-print-directory fuzz ENGINE=postgres COUNT=500
	@$(MAKE) --no-print-directory docs

fuzz: $(READY) ## random plans over random streams, an engine against the evaluator: SEED, COUNT, ENGINE, JOBS
	@$(if $(filter postgres,$(ENGINE)),$(BIN)/python -m tests.reference.servers) $(BIN)/streamproof verify fuzz \
	  --oracle evaluator --engine $(ENGINE) --cases $(COUNT) --seed $(SEED) --jobs $(JOBS)

$(VENV)/.fuzz: $(READY) requirements-fuzz.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r requirements-fuzz.lock
	@touch $@

fuzz-input: $(VENV)/.fuzz ## bytes for everything that reads, guided by what they reach: TARGET, SECONDS, RUNS, SEED
	@$(BIN)/python -m tests.reading.fuzz --seconds $(SECONDS) --runs $(RUNS) --seed $(SEED) $(TARGET)

bench: $(READY) ## benchmarks, as ratios against named peers
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

.venv-peers/.ready: benchmarks/peers.txt
	@grep -v '^#' $< | while read -r name wanted; do \
	  echo "setting up .venv-peers/$$name"; \
	  test -x .venv-peers/$$name/bin/python || $(PYTHON) -m venv .venv-peers/$$name || exit 1; \
	  .venv-peers/$$name/bin/python -m pip install --quiet --disable-pip-version-check $$wanted || exit 1; \
	done
	@touch $@

bench-peers: $(READY) .venv-peers/.ready ## set up the streaming peers, then the engine benchmark against all of them
	@$(BIN)/python benchmarks/bench_engine.py --full

bench-disorder: $(READY) ## making and measuring disorder beside Spark's own sort, 1 and 10 million rows; lag of a replay
	@$(BIN)/python benchmarks/bench_disorder.py --save

bench-out-of-order: $(READY) ## the out-of-order benchmark: engines by factor and delay (Flink if bench-peers set it up)
	@$(BIN)/python benchmarks/disorder/out_of_order.py --save

docs: $(READY) ## build the documentation into site/, without network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

lock: $(READY) ## write the installed versions into requirements.lock, with the hashes that pip's index tells
	@$(BIN)/python release/lock.py

sbom: $(READY) ## write what is installed, with versions and licences, into sbom.json (CycloneDX)
	@$(BIN)/python release/sbom.py > sbom.new && mv sbom.new sbom.json && echo "sbom.json"

clean: ## remove everything that was made, the virtual environment included
	@rm -rf $(VENV) .venv-peers site dist sbom.json .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
