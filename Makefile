# Two commands matter: `make demo` shows what the package does, `make test` runs
# everything a change must pass. Both make their own .venv and need nothing but
# Python >= 3.11 and, for the fast kernel, a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test bench lint types clean

$(BIN)/python:
	@echo "1. Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip

SOURCES := $(shell find src -name '*.py' -o -name '*.cpp' -o -name '*.hpp' -o -name '*.pyi' -o -name '*.html' -o -name '*.css' -o -name '*.js') pyproject.toml CMakeLists.txt README.md

$(VENV)/demo.stamp: $(BIN)/python $(SOURCES)
	@echo "2. Downloading what a1gm needs and building its kernel (a few minutes) ..."
	@$(BIN)/python -m pip install --quiet --upgrade '.[cli,plot]'
	@touch $@

$(VENV)/test.stamp: $(BIN)/python $(SOURCES)
	@echo "2. Downloading what the tests need and building the kernel (a few minutes) ..."
	@$(BIN)/python -m pip install --quiet --upgrade '.[all]' --group dev
	@touch $@

demo: $(VENV)/demo.stamp
	@echo "3. Running: a1gm demo"
	@$(BIN)/a1gm demo

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest

bench: $(VENV)/test.stamp
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/nmmf.py

clean:
	rm -rf $(VENV) build dist
