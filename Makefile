# make demo   installs into .venv, then compiles a matrix product and shows every stage
# make test   installs into .venv, then runs lint, types and tests
# make docs   installs into .venv, then builds the site of docs/ in build/docs

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
CODE := rise rewrites strategies codegen bench tests examples benchmarks docs/building docs/conf.py
PROSE := README.md CHANGELOG.md CONTRIBUTING.md docs

.PHONY: demo test suite coverage attack proofs docs lint types format clean

demo: $(STAMP)
	$(BIN)/rise demo

# the checks run beside the tests: on a fresh clone mypy takes half a minute on one core
test: $(STAMP)
	@$(MAKE) --no-print-directory -j suite types lint

# worksteal: a worker runs whole files, so that what their tests share is made once. Bytecode is written also where
# the environment forbids it: the processes that tests start take half the time
suite: $(STAMP)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal

# which lines of the library the suite runs, by file; nothing fails
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov=rise --cov=rewrites --cov=strategies --cov=codegen --cov=bench --cov-report=term:skip-covered

# draws new cases of what the suite tests, for up to an hour, and prints the seed
attack: $(STAMP)
	$(BIN)/python -m tests.attack

# proves all rules, and writes which of them are proved
proofs: $(STAMP)
	$(BIN)/python -m rewrites.proofs

# from nothing, as an old build would keep links to names that are gone. Warnings are errors; then links are checked,
# and that nothing comes from a network
docs: $(DOCS_STAMP)
	rm -rf build/docs build/doctrees docs/generated
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs
	$(BIN)/python docs/building/check.py build/docs

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/codespell $(CODE) $(PROSE)

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# pycuda needs an NVIDIA driver, and nvcc to build it; with both, kernels also run on the GPU
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -e '.[dev]'
	@if command -v nvidia-smi >/dev/null && command -v nvcc >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cuda]' \
	    || echo "note: pycuda cannot be installed; kernels run in the emulator"; \
	fi
	touch $@

$(DOCS_STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build docs/generated *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
