# Everything a newcomer or the CI needs. Each target sets itself up; nothing else is to be installed by hand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Where torch alone comes from, such as the index that has it without CUDA; empty: where all packages come from.
TORCH_INDEX ?=
# A notice that Material's last year has begun: docs/decisions.md has what follows from it.
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo setup test test-slow test-long check lint mypy pyright strict-site bench docs site release clean

demo: $(CORE)           ## index data/, ask three questions, and one in German of texts in six languages
	@rm -rf demo.index demo-languages.index
	$(BIN)/likewise index demo.index data/collection
	$(BIN)/likewise search demo.index "how can I stop my bread from going stale" -k 3
	$(BIN)/likewise search demo.index "why do some stars explode" -k 3
	$(BIN)/likewise search demo.index "what should I do when I cannot fall asleep" -k 3
	$(BIN)/likewise index demo-languages.index data/languages
	$(BIN)/likewise search demo-languages.index "ich liege nachts stundenlang wach" -k 3

setup: $(READY)         ## the extras, and what the tests need

# How many processes run the tests: three for two cores, eight at most (tests/hardware.py); 0 for this one alone.
WORKERS ?= auto

test: $(READY)          ## the default suite, a few minutes on two cores
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-slow: $(READY)     ## what the default suite leaves out
	$(BIN)/python -m pytest -m "slow and not long" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-long: $(READY)     ## what takes minutes each: before a release
	$(BIN)/python -m pytest -m long -n $(WORKERS) --dist loadfile --no-loadscope-reorder

check: lint mypy pyright strict-site ## lint, format, types, lines per part, and the site without a warning

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/part_lines.py

mypy: $(READY)
	$(BIN)/mypy

pyright: $(READY)
	$(BIN)/pyright --pythonpath $(BIN)/python

strict-site: $(READY)
	$(BIN)/mkdocs build --strict --quiet

bench: $(READY)         ## list the tables of docs/measured.md; TABLE=name measures those of a section again
	$(BIN)/python -m benchmarks $(TABLE)

docs: $(READY)          ## write the reference, the picture and lists of the architecture, and what README and tutorial show
	$(BIN)/python -m docs.reference
	$(BIN)/python -m docs.parts_picture
	$(BIN)/python tests/folder_imports.py
	$(BIN)/python -m docs.examples

release: $(READY)       ## wheel and sdist in dist/, built without a network and checked; nothing is uploaded
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	LIKEWISE_TEST_DISTRIBUTIONS=dist $(BIN)/python -m pytest -n 0 -q tests/docs/test_project.py

site: $(READY)          ## the site at http://127.0.0.1:8000, built again whenever a page changes
	$(BIN)/mkdocs serve

clean:
	rm -rf $(VENV) dist site demo.index demo-languages.index

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
ifneq ($(TORCH_INDEX),)
	@# One try: pip would try for minutes, and at a further index once more for each package.
	$(PIP) --no-deps --retries 0 --timeout 10 --index-url $(TORCH_INDEX) $$(grep ^torch== constraints.txt) \
	  || { echo "no torch at $(TORCH_INDEX): without TORCH_INDEX, torch comes with all other packages" >&2; exit 1; }
endif
	$(PIP) -c constraints.txt -e .
	@touch $@

# The extras, and what the tests need.
$(READY): $(CORE)
	$(PIP) -c constraints.txt -e '.[all,dev]'
	@touch $@
