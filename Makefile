# Everything runs from the project's own .venv, which the targets create and keep current.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# most modules of the packages are never imported: those that are get their bytecode then
INSTALL := $(PIP) install --no-compile
# without its bytecode on disk, every process of the tests would compile all of the package again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-machines lint types units bench docs verify fuzz differential dist clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(INSTALL) -e ".[test]"
	touch $@ $(VENV)/.runtime

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(INSTALL) -e ".[bench]"
	touch $@ $(VENV)/.test $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(INSTALL) -e ".[docs]"
	touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime
	$(BIN)/alembert demo

# the types are checked beside the tests: alone, they would leave all cores but one idle
test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory --jobs=2 types units

units: $(VENV)/.test
	$(BIN)/python -m pytest -n auto --dist worksteal

types: $(VENV)/.test
	$(BIN)/mypy

# for every night: other processors' arithmetic, lanes, threads, orders; TESTS names a part of the tests, MACHINES some of them
test-machines: $(VENV)/.test
	$(BIN)/python tests/machines.py $(MACHINES:%=--machine %) $(TESTS)

lint: types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/verified.py
	$(BIN)/python docs/generate_commands.py
	$(BIN)/python docs/generate_api.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/alembert demo --folder site/gallery
	@echo "The documentation is in site/index.html"

verify: $(VENV)/.test
	mkdir -p build
	$(BIN)/alembert verify --save build/verification.json --report build/verification
	$(BIN)/python docs/verified.py build/verification.json
	@echo "The report is build/verification/index.html, a page per area; docs/verification.md has the table"

# as long as MINUTES says; failures are left in build/fuzz as model files
MINUTES ?= 10
fuzz: $(VENV)/.test
	$(BIN)/python -m alembert.verify.fuzz --minutes $(MINUTES) --folder build/fuzz

# random linear systems against python-control, more of them than the tests take
SYSTEMS ?= 1000
differential: $(VENV)/.test
	ALEMBERT_SYSTEMS=$(SYSTEMS) $(BIN)/python -m pytest -q tests/control/test_against_python_control.py

# what is released: both archives, checked, and the wheel tried in an empty environment
$(VENV)/.release: pyproject.toml | $(BIN)/python
	$(INSTALL) build twine
	touch $@

dist: $(VENV)/.release
	rm -rf dist build/wheel-environment
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/wheel-environment
	build/wheel-environment/bin/python -m pip --disable-pip-version-check --quiet install dist/*.whl
	build/wheel-environment/bin/alembert --version
	cd build && wheel-environment/bin/python -c "import alembert as al; m = al.library.arm7(); print(m.forward_dynamics(m.neutral(), m.neutral(), m.neutral()))"
	@echo "The archives are in dist"

clean:
	rm -rf $(VENV) build dist site demo-output .pytest_cache .mypy_cache .ruff_cache
