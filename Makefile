# make dashboard | make test | make refresh; each sets up what it needs in .venv and says what it does.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PORT ?= 8501

.PHONY: help dashboard refresh test verify soak benchmark picture dictionary clean
.DEFAULT_GOAL := help

help:
	@echo "make dashboard   set up, measure what the store lacks (nothing, when complete), serve the page on port $(PORT)"
	@echo "make refresh     set up with torch, measure what the store lacks, publish it: the scheduled job (ARGS='--budget 1h')"
	@echo "make test        set up with torch, run the whole suite"
	@echo "make verify      set up with torch, hold the store against its record and some of its cells against measuring"
	@echo "make soak        the long tests: kills by the thousand, full disks, older DuckDB clients, other people's models; make benchmark: speeds"
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
	@$(RUN) -m jobs.status --check || { test $$? = 1 && $(MAKE) $(VENV)/jobs && { $(RUN) -m jobs.refresh || test $$? = 1; }; }
	@echo "Serving the page on http://localhost:$(PORT), until Ctrl-C"
	@$(RUN) -m streamlit run app.py --server.port $(PORT)

refresh: $(VENV)/jobs
	@echo "Measuring what the store lacks"
	@$(RUN) -m jobs.refresh $(ARGS)

test: $(VENV)/test
	@echo "Checking style and import rules"
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/lint-imports
	@echo "Running the suite"
	@$(RUN) -m pytest --numprocesses 2 --dist loadgroup --no-loadscope-reorder

verify: $(VENV)/jobs
	@echo "Verifying the store"
	@$(RUN) -m jobs.verify $(ARGS)

soak: $(VENV)/test
	@echo "Running the long tests"
	@$(RUN) -m pytest -m soak --soak -s $(ARGS)

benchmark: $(VENV)/test
	@echo "Measuring speeds"
	@$(RUN) -m jobs.benchmark $(ARGS)
	@$(RUN) -m jobs.benchmark_store

picture: $(VENV)/test
	@echo "Drawing data/top_gradient.svg"
	@$(RUN) -m jobs.picture data/top_gradient.svg

dictionary: $(VENV)/page
	@echo "Writing data/README.md"
	@$(RUN) -m jobs.dictionary > data/README.md.new && mv data/README.md.new data/README.md

clean:
	@echo "Removing $(VENV) and caches; the store stays"
	@rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache lnmeasure.egg-info
