# Two commands do everything: `make demo` runs the main job, `make test` checks the project.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
LOWEST := .venv-lowest/bin
DIST := .venv-dist/bin

.PHONY: demo test checks tests coverage test-sktime test-lowest dist newcomer docs pyright lint format bench mutants results clean

demo: $(READY)
	$(BIN)/jointset demo

test: $(READY)  # the types are checked beside the tests
	$(MAKE) -j2 checks tests

checks: lint docs

tests: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

coverage: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered

# the pages as a site in site/, without a network; a warning, a dead link and a page outside the menu are errors
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# sktime wants older packages than constraints.txt pins: an environment of its own
test-sktime:
	$(PYTHON) -m venv .venv-sktime
	.venv-sktime/bin/pip install --quiet --disable-pip-version-check -e '.[sktime]' pytest hypothesis
	OMP_NUM_THREADS=1 .venv-sktime/bin/pytest -W ignore tests/adapters/test_sktime.py

# the oldest versions that pyproject.toml allows; tools that check code, build pages or fuzz a service are left out
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/pip install --quiet --disable-pip-version-check -c constraints-lowest.txt \
		-e '.[learn,serve,mqtt,dask,hdf5,xarray,sklearn]' httpx pytest pytest-xdist hypothesis statsmodels POT
	OMP_NUM_THREADS=1 $(LOWEST)/pytest -n 2 -W ignore

# the five commands of docs/quickstart.md in an empty folder, from a new environment to a page, within three minutes
newcomer:
	$(PYTHON) benchmarks/newcomer.py

# wheel and sdist, and the wheel as a stranger meets it: an empty environment, no torch, type checks from outside
dist:
	rm -rf dist .venv-dist
	$(PYTHON) -m venv .venv-dist
	$(DIST)/pip install --quiet --disable-pip-version-check build twine
	$(DIST)/python -m build --outdir dist .
	$(DIST)/twine check --strict dist/*
	$(DIST)/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl mypy pandas-stubs
	$(DIST)/python benchmarks/stranger.py $(DIST)

# the code of a user, every example of README and the pages, and the tutorials under pyright, a package of npm
pyright: $(READY)
	$(BIN)/python tests/typed/page_blocks.py build/typed
	npx --yes pyright@1.1.414

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# eleven scripts that measure speed, each within five minutes; --help names them
bench: $(READY)
	$(BIN)/python benchmarks/every.py

mutants: $(READY)
	nice $(BIN)/python benchmarks/mutants.py

results: $(READY)
	$(BIN)/python benchmarks/results_page.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-sktime .venv-lowest .venv-dist dist demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
