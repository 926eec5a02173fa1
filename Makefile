PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test test-oldest test-sdist dist-check core sanitize lint docs benchmarks compare performance experiments clean

demo: $(VENV)/.run core
	$(BIN)/hscrf demo

# The tests of a file run in one process, so that they share fixtures; tests/conftest.py puts the slowest files first.
# Many tests start processes: all use the bytecode in .venv/bytecode. It is compiled once, while the linters run.
BYTECODE = PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(abspath $(VENV))/bytecode"
test: $(VENV)/.test core
	$(MAKE) --no-print-directory --jobs=2 lint $(VENV)/bytecode
	$(BYTECODE) $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

$(VENV)/bytecode: | $(VENV)/.test core
	@$(BYTECODE) $(BIN)/python -m pytest -q --collect-only >/dev/null 2>&1 || true  # the run itself reports errors

# What strangers get: the sdist is built, unpacked, installed and tested with its own tests; test-oldest does so with the
# lowest versions that pyproject.toml allows, for which the lowest Python fits best: make test-oldest PYTHON=python3.10
test-sdist:
	packaging/test_sdist.sh $(PYTHON) $(TESTS)

test-oldest:
	packaging/test_sdist.sh --oldest $(PYTHON) $(TESTS)

# Build sdist and wheel, check them, and try them in clean environments, also without a compiler.
dist-check: $(VENV)/.publishing
	$(BIN)/python packaging/check_dist.py

# Compile again what changed in core/. The module lies next to the Python files, in src/hscrf. Ninja runs its own jobs: it
# must not look for those of make.
core: | $(VENV)/.installed
	@if [ -e core/inplace/build.ninja ]; then MAKEFLAGS= $(BIN)/cmake --build core/inplace; \
		else echo "The compiled core is not built: no compiler was found. NumPy is used instead."; fi

# The tests of the core with AddressSanitizer and UndefinedBehaviorSanitizer, on a copy of src with a core of its own.
# Python itself leaks on purpose, so leaks are not looked for. The sanitized core has the lowest instruction set only; the
# limit is for the processes that tests start, which have the usual core.
sanitize: $(VENV)/.test
	mkdir -p build/sanitize && rm -rf build/sanitize/src && cp -r src build/sanitize/src
	rm -f build/sanitize/src/hscrf/_core.*.so
	$(BIN)/cmake -S core -B build/sanitize/core -G Ninja -DCMAKE_BUILD_TYPE=Debug -DHSCRF_SANITIZE=ON -DHSCRF_IN_PLACE=ON \
		-DHSCRF_FOLDER=$(CURDIR)/build/sanitize/src/hscrf -DPython_EXECUTABLE=$(abspath $(BIN))/python
	$(BIN)/cmake --build build/sanitize/core
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 HSCRF_TEST_CORE=required HSCRF_ISA=baseline \
		$(BIN)/python -m pytest -q -o pythonpath="build/sanitize/src tests" $(SANITIZED)
SANITIZED = tests/test_native.py tests/test_feature_kernels.py tests/test_engines.py tests/test_twin.py tests/test_bundles.py \
	tests/test_space.py tests/test_core_fuzz.py

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src
	$(BIN)/clang-format --dry-run -Werror core/src/*
	$(BIN)/codespell $(SPELLED)
SPELLED = *.md CITATION.cff pyproject.toml Makefile benchmarks core docs examples experiments packaging src tests

# Pages on real data run where HSCRF_DATA or the cache has the data. -W: a link that leads nowhere is an error.
docs: $(VENV)/.docs core
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build
	$(BIN)/python docs/words.py --docstrings --source README.md docs CHANGELOG.md CONTRIBUTING.md RELEASING.md SECURITY.md CODE_OF_CONDUCT.md
	@echo "The site is in docs/_build/index.html"

benchmarks: $(VENV)/.benchmarks core
	$(BIN)/python benchmarks/engine.py

# Tables beside CRFsuite, hmmlearn and others, in an environment of its own: see benchmarks/compare.py --help.
# make compare COMPARE="--dynamax --torch --output tables.md"
compare:
	$(PYTHON) benchmarks/compare.py $(COMPARE)

# Measures anew and writes docs/performance.md; PERFORMANCE="--quick" takes minutes instead of an hour.
performance:
	$(PYTHON) docs/performance.py $(PERFORMANCE)

# The studies of the results page; FULL=1 runs everything and rewrites docs/results.md and its notes.
# The study of neural encoders runs where PyTorch is installed.
STUDIES = plain defaults stopping incomplete fillers partial penalties small borders indoor chunking joint citations hiding economy
TORCH = $(shell $(BIN)/python -c "import importlib.util as u; print('neural' if u.find_spec('torch') else '')" 2> /dev/null)
experiments: $(VENV)/.experiments core
	for study in $(STUDIES) $(TORCH); do $(BIN)/python experiments/$$study.py $(if $(FULL),--full,--quick) || exit 1; done
	$(BIN)/python experiments/report.py $(if $(FULL),,--quick)

clean:
	rm -rf $(VENV) build dist src/hscrf/_core.*.so
	find core/inplace -mindepth 1 ! -name CMakeLists.txt -delete
	rm -rf docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras; each is older than pyproject.toml until it is installed again. The core is built with
# the tools of the same environment, so that `make core` can go on with what has been built.
$(VENV)/.run: extras = [plots,studio]
$(VENV)/.test: extras = [test]
$(VENV)/.docs: extras = [docs]
$(VENV)/.benchmarks: extras = [benchmarks]
$(VENV)/.experiments: extras = [experiments]
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

$(VENV)/.run $(VENV)/.test $(VENV)/.docs $(VENV)/.benchmarks $(VENV)/.experiments: pyproject.toml | $(VENV)/.tools
	$(PIP) --no-build-isolation -e ".$(extras)"
	touch $@ $(VENV)/.installed

$(VENV)/.installed: | $(VENV)/.tools
	$(PIP) --no-build-isolation -e .
	touch $@

$(VENV)/.publishing: | $(VENV)/.tools
	$(PIP) build twine check-wheel-contents
	touch $@

# From 1.0 on, scikit-build-core imports an editable package before it looks at PYTHONPATH: `make sanitize`, and tests in a
# second checkout with the same environment, would silently test the first one.
$(VENV)/.tools: | $(BIN)/python
	$(PIP) "scikit-build-core>=0.10,<1" "nanobind>=2.4" cmake ninja
	touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
