# Everything a newcomer or the CI needs. Each target sets itself up; nothing else is to be installed by hand.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
READY  := $(VENV)/.ready

.PHONY: demo test test-slow check bench docs clean

demo: $(CORE)           ## index data/, ask three questions
	@rm -rf demo.index
	$(BIN)/likewise index demo.index data/collection
	$(BIN)/likewise search demo.index "how can I stop my bread from going stale" -k 3
	$(BIN)/likewise search demo.index "why do some stars explode" -k 3
	$(BIN)/likewise search demo.index "what should I do when I cannot fall asleep" -k 3

# How many processes run the default suite: one a core, eight at most (tests/hardware.py); 0 for this one alone.
WORKERS ?= auto

test: $(READY)          ## the default suite, a few minutes on two cores
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-slow: $(READY)     ## what the default suite leaves out, one after the other
	$(BIN)/python -m pytest -m slow

check: $(READY)         ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)         ## the measured tables of README and docs
	$(BIN)/python -m benchmarks

docs: $(READY)          ## write docs/reference.md from the program, and what README and tutorial show
	$(BIN)/python -m docs.reference
	$(BIN)/python -m docs.examples

clean:
	rm -rf $(VENV) demo.index

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# The extras, and what the tests need.
$(READY): $(CORE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $@
