PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint docs benchmarks experiments clean

demo: $(VENV)/.run
	$(BIN)/hscrf demo

# Many tests start processes: all share the kernels and the bytecode that the first one has compiled. What the tests of
# a file share is made once.
test: lint
	cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && NUMBA_CACHE_DIR="$$cache" PYTHONDONTWRITEBYTECODE= \
		PYTHONPYCACHEPREFIX="$$cache/bytecode" $(BIN)/python -m pytest -q -n 2 --dist loadfile

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build
	@echo "The site is in docs/_build/index.html"

benchmarks: $(VENV)/.benchmarks
	$(BIN)/python benchmarks/engine.py

# The studies of the results page; FULL=1 runs everything and rewrites docs/results.md and its notes.
STUDIES = penalties defaults indoor chunking joint citations hiding economy
experiments: $(VENV)/.experiments
	for study in $(STUDIES); do $(BIN)/python experiments/$$study.py $(if $(FULL),--full,--quick) || exit 1; done
	$(BIN)/python experiments/report.py $(if $(FULL),,--quick)

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras; each is older than pyproject.toml until it is installed again.
$(VENV)/.run: extras = [plots,studio]
$(VENV)/.test: extras = [test]
$(VENV)/.docs: extras = [docs]
$(VENV)/.benchmarks: extras = [benchmarks]
$(VENV)/.experiments: extras = [experiments]

$(VENV)/.run $(VENV)/.test $(VENV)/.docs $(VENV)/.benchmarks $(VENV)/.experiments: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".$(extras)"
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
