# make dashboard | make test | make refresh; each sets up what it needs in .venv and says what it does.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PORT ?= 8501

.PHONY: help dashboard refresh test picture dictionary clean
.DEFAULT_GOAL := help

help:
	@echo "make dashboard   set up, measure what the store lacks (nothing, when complete), serve the page on port $(PORT)"
	@echo "make refresh     set up with torch, measure what the store lacks, publish it: the scheduled job"
	@echo "make test        set up with torch, run the whole suite"
	@echo "make picture     draw the README's picture from the store; make dictionary: write data/README.md"

$(RUN):
	@echo "Setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lnmeasure needs Python 3.11 or newer; \
	this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/page $(VENV)/jobs $(VENV)/test: $(VENV)/%: pyproject.toml constraints.txt | $(RUN)
	@echo "Installing what '$*' needs (versions in constraints.txt)"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.$(if $(filter page,$*),,[$(if $(filter test,$*),jobs$(comma)test,$*)])'
	@touch $@

comma := ,

dashboard: $(VENV)/page
	@echo "Looking for cells the store lacks"
	@$(RUN) -m jobs.status --check || { code=$$?; test $$code = 1 || exit $$code; $(MAKE) refresh; }
	@echo "Serving the page on http://localhost:$(PORT), until Ctrl-C"
	@$(RUN) -m streamlit run app.py --server.port $(PORT)

refresh: $(VENV)/jobs
	@echo "Measuring what the store lacks"
	@$(RUN) -m jobs.refresh

test: $(VENV)/test
	@echo "Checking style and import rules"
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/lint-imports
	@echo "Running the suite"
	@$(RUN) -m pytest

picture: $(VENV)/test
	@echo "Drawing data/top_gradient.svg"
	@$(RUN) -m jobs.picture data/top_gradient.svg

dictionary: $(VENV)/page
	@echo "Writing data/README.md"
	@$(RUN) -m jobs.dictionary > data/README.md.new && mv data/README.md.new data/README.md

clean:
	@echo "Removing $(VENV) and caches; the store stays"
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache lnmeasure.egg-info
