PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
STAMP  := $(VENV)/.installed

# Which of the cases beside the repository to run, where they exist: options for pytest.  Left out: timings.
CASES          ?= ../shared/cases
CASE_SELECTION ?= -m "not slow"

BENCH ?=

.PHONY: run test lint types bench docs tpu-check clean

# From a NumPy function to a trained model.  It needs no development tools.
run: $(READY)
	$(BIN)/python examples/run.py

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 -q
	@if [ -d "$(CASES)" ]; then \
		echo "cases in $(CASES)"; python="$(abspath $(BIN))/python"; \
		cd "$(CASES)" && "$$python" -m pytest -n 2 -q -p no:cacheprovider $(CASE_SELECTION); \
	fi

lint: $(STAMP)
	$(BIN)/python -m ruff check .
	@$(MAKE) --no-print-directory types

# The tree of links shows mypy the import package as it is installed.
types: $(STAMP)
	@mkdir -p build/types/gradsmith
	@find build/types/gradsmith -type l -delete
	@ln -sfn $(CURDIR)/runtime/* $(CURDIR)/transpiler $(CURDIR)/cli build/types/gradsmith/
	$(BIN)/python -m mypy

# Beside JAX; `make bench BENCH=--quick` for a short run.
bench: $(STAMP)
	$(BIN)/python benchmarks/run.py $(BENCH)

# Some 400 modules, compiled ahead of time by the TPU compiler (libtpu, a large wheel); no TPU is needed.
tpu-check: $(STAMP)
	$(BIN)/python -m pip install --quiet -e ".[tpu]"
	$(BIN)/python tests/tpu/check.py

# The pages in docs/ as a site in build/site.
docs: $(STAMP)
	$(BIN)/python docs/build.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	$(BIN)/python -m compileall -q runtime transpiler cli
	@touch $@

$(STAMP): $(READY)
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	$(BIN)/python -m compileall -q runtime transpiler cli
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
