# Two commands matter: `make demo` shows what the package does, `make test` runs
# what a change must pass. Both make their own .venv and need nothing but
# Python >= 3.11: a C++ compiler is taken from PyPI where there is none
# (backend/a1gm_build.py). `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

QUICK := tests/base tests/kernel tests/observe tests/solve tests/fit tests/rows \
  tests/api

.PHONY: help demo test nightly quick docs bench attack attack-asan attack-tsan lint types dist \
  versions clean

help:  ## these lines
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

# A dot every three seconds while a command of minutes runs.
DOTS := (while sleep 3 && kill -0 $$$$; do printf .; done) 2>/dev/null & \
  trap "kill $$!; echo" EXIT;

$(BIN)/python:
	@echo "1. Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

SOURCES := $(shell find src -name '*.py' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.pyi' -o -name '*.html' -o -name '*.css' -o -name '*.js') backend/a1gm_build.py pyproject.toml CMakeLists.txt README.md

$(VENV)/demo.stamp: $(BIN)/python $(SOURCES)
	@echo "2. Downloading what a1gm needs and building its kernel (a minute or two) ..."
	@$(DOTS) $(BIN)/python -m pip install --quiet --upgrade '.[cli,plot,excel]'
	@touch $@

$(VENV)/test.stamp: $(BIN)/python $(SOURCES)
	@echo "2. Downloading what the tests need and building the kernel (a few minutes) ..."
	@$(DOTS) $(BIN)/python -m pip install --quiet --upgrade '.[all]' --group dev
	@touch $@

demo: $(VENV)/demo.stamp  ## what the package does, on a small table
	@echo "3. Running: a1gm demo"
	@$(BIN)/a1gm demo
	@echo "For tables of your own: . $(BIN)/activate, then a1gm --help"

lint: $(VENV)/test.stamp  ## ruff: rules and format; the workflow files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

types: $(VENV)/test.stamp  ## mypy, strict
	$(BIN)/mypy

# Tests that share an engine stay in one process (tests/conftest.py).
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup

test: lint types  ## what a change must pass: lint, types, tests
	$(PYTEST) -m "not nightly" --durations=10 --durations-min=3

nightly: $(VENV)/test.stamp  ## the tests on more engines, subjects and seeds
	$(PYTEST) -m nightly --durations=10 --durations-min=3

quick: $(VENV)/test.stamp  ## the tests of the engine, in less than a minute
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q -m "not nightly" $(QUICK)

$(VENV)/docs.stamp: $(VENV)/test.stamp
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

# Strict: a broken link, a failing example or an error in the browser is one. Nothing is
# fetched.
docs: $(VENV)/docs.stamp  ## the documentation site, in site/
	rm -rf docs/reference docs/gallery
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site
	$(BIN)/python -m pytest -q tests/site
	@echo "Open site/index.html in a browser."

$(VENV)/bench.stamp: $(VENV)/test.stamp
	@$(BIN)/python -m pip install --quiet --group peers
	@touch $@

# Every script runs, whatever an earlier one missed; then the pages get the figures. Those of
# docs/paper.md (table1.py wants its data) and docs/scale.md (4 GB) have scripts of their own.
bench: $(VENV)/bench.stamp  ## the figures of README and Performance, again: an hour
	@missed=0; for name in engine nmmf tensor paths uncertainty zoo coverage_of_intervals evidence \
	    peers; do \
	  $(BIN)/python benchmarks/$$name.py || missed=1; done; \
	$(BIN)/python benchmarks/page.py; exit $$missed

# Random tables against the truth and damaged files: minutes, A1GM_ATTACK_TABLES=N tables.
attack: $(VENV)/test.stamp  ## random tables against 60-digit truth, damaged files
	PYTHONPATH=tests $(BIN)/python -m attack
	PYTHONPATH=tests $(BIN)/python -m attack.totals 5000
	PYTHONPATH=tests $(BIN)/python -m attack.tensor 200
	PYTHONPATH=tests $(BIN)/python -m attack.engines 300

# The same with the kernel built for sanitizers of GCC, in an environment that borrows
# all other packages from $(VENV). Nothing but the kernel is built for them, so leaks at
# exit (all of CPython's memory) and races of other libraries are not looked for; TSan
# cannot map its memory on newer systems unless addresses are fixed (setarch -R); the
# test it leaves out lets all rows of a target share their memory.
SANITIZE_asan := address,undefined
SANITIZE_tsan := thread
ASAN := $$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)
TSAN := $$(gcc -print-file-name=libtsan.so)
attack-asan: export ASAN_OPTIONS := detect_leaks=0:detect_stack_use_after_return=1
attack-asan: export UBSAN_OPTIONS := halt_on_error=1:print_stacktrace=1
attack-asan: export PYTHONMALLOC := malloc
attack-tsan: export TSAN_OPTIONS := halt_on_error=1:ignore_noninstrumented_modules=1

.venv-%/stamp: $(VENV)/test.stamp
	$(PYTHON) -m venv $(@D)
	$(BIN)/python -c "import site; print(site.getsitepackages()[0])" \
	  > $$($(@D)/bin/python -c "import site; print(site.getsitepackages()[0])")/borrowed.pth
	$(@D)/bin/python -m pip install --quiet --no-deps --force-reinstall . \
	  -C cmake.define.A1GM_SANITIZE="$(SANITIZE_$*)" -C build-dir=build/$*
	@touch $@

attack-asan: .venv-asan/stamp  ## the same under AddressSanitizer and UBSan
	LD_PRELOAD="$(ASAN)" $(<D)/bin/python -m pytest -q -p no:cacheprovider tests/kernel
	A1GM_ATTACK_PRELOAD="$(ASAN)" PYTHONPATH=tests $(<D)/bin/python -m attack --tables 3000

attack-tsan: .venv-tsan/stamp  ## the same under ThreadSanitizer
	LD_PRELOAD="$(TSAN)" setarch -R $(<D)/bin/python -m pytest -q -p no:cacheprovider \
	  --deselect tests/kernel/test_interrupts.py::test_placing_is_interrupted \
	  tests/kernel tests/observe tests/api/test_pattern_table.py
	A1GM_ATTACK_PRELOAD="$(TSAN)" PYTHONPATH=tests setarch -R $(<D)/bin/python -m attack \
	  --tables 1000

# An sdist and a wheel whose tag says on which systems it runs; then the wheel is used
# where there is no compiler. ABI3: a Python >= 3.12 makes one wheel for all later ones.
$(VENV)/dist.stamp: $(BIN)/python pyproject.toml
	@$(BIN)/python -m pip install --quiet --group dist
	@touch $@

dist: $(VENV)/dist.stamp $(SOURCES)  ## sdist and wheel, tried without a compiler
	rm -rf dist build/dist
	$(BIN)/python -m build --outdir build/dist
	mkdir -p dist && mv build/dist/*.tar.gz dist/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/dist/*.whl
	$(BIN)/twine check --strict dist/*
	.ci/try-dist dist/*.whl dist/*.tar.gz $(PYTHON) $(QUICK)

# The oldest packages that pyproject.toml allows, then the newest; NEWEST=python3.13 tries
# those on another Python.
NEWEST ?= $(PYTHON)
versions:  ## the tests with the oldest and the newest packages
	.ci/try-versions $(PYTHON) $(NEWEST) $(QUICK) tests/estimators/test_sklearn.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-asan .venv-tsan build dist site docs/reference docs/gallery \
	  demo-output
