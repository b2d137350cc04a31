# make demo    see it disentangle, in five minutes   make test    run the tests
# make lint    style, types, rooms                   make bench   measure speed
# make test-slow   claims of the papers at small scale (about an hour)
# make results     tables of docs/results.md from stored results
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test test-slow results lint format bench lock clean

help:
	@sed -n 's/^# //p' Makefile

# A second call skips the installation unless a dependency changed.
$(INSTALLED): pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing unweave into $(VENV) (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/unweave demo -o demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow" --cov --cov-report=term:skip-covered

# Claims of the papers at small scale, and full-size reference cases: about an hour.
test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 -m slow -s

# Tables of docs/results.md, after stored results have changed.
results: $(INSTALLED)
	$(BIN)/python tests/docs/update_results.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(INSTALLED)
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/metrics.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/explorer.py

# The exact versions that the lock file holds the project to, from what is installed now.
lock:
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+cpu$$//' > requirements.lock

clean:
	rm -rf $(VENV) .cache .coverage* demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
