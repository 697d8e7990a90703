# make demo   sets up what it needs, then compiles a matrix product and shows every stage
# make test   sets up what it needs, then lint, types and tests

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := rise rewrites strategies codegen bench tests examples benchmarks

.PHONY: demo test attack lint types format clean

demo: $(STAMP)
	$(BIN)/rise demo

test: lint types
	$(BIN)/python -m pytest -n 2

# what the suite looks for, drawn anew: up to an hour, with the seed printed
attack: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m attack

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# on a machine with an NVIDIA driver and nvcc, which pycuda needs to build, the GPU is used as well
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@if command -v nvidia-smi >/dev/null && command -v nvcc >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cuda]' \
	    || echo "note: pycuda cannot be installed; kernels run in the emulator"; \
	fi
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
