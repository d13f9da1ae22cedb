# make demo   one example from parsing to printing, with the bytes before and after
# make demo-torch   the PyTorch examples, in a .venv-torch of their own
# make test-torch   the tests of the PyTorch frontend, in the same environment
# make test   style checks, then the tests (lit included) with pyright beside them; slow tests only in test-whole
# make test-whole   the slow tests, too
# make lint   only ruff and pyright
# make generate   write the generated pages of docs/ again
# make generate-aten   write the table of PyTorch's operations again, dialects/aten.py, in .venv-torch
# make docs   the pages of docs/ as a searchable site, in site/
# make test-oldest   the passes and the driver with the oldest xDSL that is supported, in a .venv-oldest of its own;
#                    without the tests of the solvers, which do not use xDSL
# make mutation   change the sources slightly, one change at a time: do the quick tests fail? (docs/measured/mutation.md)
# make conformance   compare the same models in MindSpore, in Paddle (each in its own environment) and here
#
# Each makes .venv when there is none and installs the project into it, once and again when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TORCH := .venv-torch
# The tests of one file stay together, since they share fixtures that are slow to make.
PARALLEL := --numprocesses auto --maxprocesses 8 --dist loadfile

.PHONY: demo demo-torch docs generate generate-aten test test-torch test-whole lint style test-oldest mutation conformance
.DELETE_ON_ERROR:

demo: $(INSTALLED)
	$(RUN)/python examples/demo.py

# pyright runs beside the tests: each leaves a core idle at times.
test: style
	@$(RUN)/pyright >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(RUN)/python -m pytest $(PARALLEL) --durations=10; tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((tests ? tests : types))

test-whole: lint
	$(RUN)/python -m pytest $(PARALLEL) --whole

lint: style
	$(RUN)/pyright

style: $(INSTALLED)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

$(RUN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is $$($(PYTHON) -V 2>&1); Python 3.11 or newer is needed (make PYTHON=python3.12 ...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(RUN)/python
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e '.[jax,flax,equinox,plan,plot,docs,notebook,test]'
	@touch $@

OLDEST := .venv-oldest
OLDEST_XDSL := 0.73.0

test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest $(PARALLEL) test/filecheck test/unit/tools -k "not large and not examples and not damaged and (not small or mlp20) and not recompute_plan and not planned_step"

$(OLDEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[plot,test]' xdsl==$(OLDEST_XDSL)
	@touch $@

# docs/generate_aten.py needs torch: see `make generate-aten`.
generate: $(INSTALLED)
	for script in reference api operations numbers conformance curve; do \
		$(RUN)/python docs/generate_$$script.py || exit 1; \
	done
	$(RUN)/python -m recompute.benchmarks.unseen.savings_page --write benchmarks/unseen/open.jsonl benchmarks/unseen/held_back.jsonl

generate-aten: $(TORCH)/.installed
	$(TORCH)/bin/python docs/generate_aten.py

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(RUN)/python -m mkdocs build --quiet
	@echo "site/index.html; the search needs a server: $(RUN)/python -m http.server -d site"

mutation: $(INSTALLED)
	$(RUN)/python -m recompute.test.mutation.run $(ARGUMENTS)

conformance: $(INSTALLED)
	$(RUN)/python test/conformance/side_by_side.py $(ARGUMENTS)

demo-torch: $(TORCH)/.installed
	$(TORCH)/bin/python examples/torch/demo.py

test-torch: $(TORCH)/.installed
	$(TORCH)/bin/pyright -p pyright-torch.json --pythonpath $(TORCH)/bin/python
	$(TORCH)/bin/python -m pytest $(PARALLEL) test/unit/frontends/torch

$(TORCH)/.installed: pyproject.toml
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[torch,test]' 'transformers>=5,<6' 'accelerate>=1.1'
	@touch $@
