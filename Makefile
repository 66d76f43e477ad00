# Every target sets up what it needs in .venv first, and does again only what has changed.
PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
PAPER_ARGS ?=
DATA ?=
FUZZ_SECONDS ?= 60
FUZZ_ARGS ?=
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

VENV := .venv
BIN := $(VENV)/bin
DONE := $(VENV)/done
CORE := CMakeLists.txt $(wildcard src/core/*/*)
CXX_SOURCES := $(wildcard src/core/*/*.?pp tests/core/*.?pp)

# cmake and ninja are in .venv where the machine has none.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint bench paper paper-quick docs wheel sanitize fuzz format clean

help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1	\2/p' Makefile | expand -t 20

demo: $(DONE)/package ## Train on sentences that people rated, and write build/demo.html about the model
	@mkdir -p build; $(BIN)/rankplane demo -o build

# A process for each core, which must find the same tests in the same order; with PYTEST_ARGS="-n 0 --pdb", in one that a debugger
# can stop.
test: $(DONE)/package $(DONE)/test ## Run the test suite (PYTEST_ARGS="-k name" for a part of it)
	@PYTHONHASHSEED=0 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(PYTEST_ARGS)

bench: $(DONE)/package $(DONE)/bench ## Measure what is to be reached, and show it against the goals (BENCH_ARGS="--tasks threads")
	@$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA)) $(BENCH_ARGS)

paper: $(DONE)/package $(DONE)/paper ## Reproduce the paper, going on where the last run ended (DATA for its texts, PAPER_ARGS)
	@$(BIN)/python -m experiments $(if $(DATA),--data $(DATA)) $(PAPER_ARGS)

paper-quick: $(DONE)/package $(DONE)/paper ## The same on a few small samples, into build/paper-quick
	@$(BIN)/python -m experiments $(if $(DATA),--data $(DATA)) --quick $(PAPER_ARGS)

# Sphinx warns of a page only when it reads it, so a build that failed forgets what it has read.
docs: $(DONE)/package $(DONE)/docs ## Build the documentation site into build/docs, and check its links
	@$(BIN)/sphinx-build -q -W --keep-going -d build/docs-cache docs build/docs || { rm -rf build/docs-cache; exit 1; }
	@$(BIN)/python docs/check_site.py build/docs
	@echo "the site is build/docs/index.html"

lint: $(DONE)/package $(DONE)/lint ## Check style, types, layers, docstrings, and warnings of the C++ compiler
	@$(BIN)/ruff check --quiet . && echo "ruff check: fine"
	@$(BIN)/ruff format --quiet --check . && echo "ruff format: fine"
	@$(BIN)/mypy --no-error-summary && echo "mypy: fine"
	@mkdir -p build; PYTHONPATH=src $(BIN)/lint-imports --config .importlinter > build/import-linter.log 2>&1 \
	  && echo "import-linter: fine" || { cat build/import-linter.log; exit 1; }
	@$(BIN)/python .ci/docstrings.py && echo "numpydoc: fine"
	@$(BIN)/clang-format --dry-run --Werror $(CXX_SOURCES) && echo "clang-format: fine"
	@! git grep -nIwE 'TODO|FIXME' -- src tests lab benchmarks examples experiments docs && echo "unfinished notes: none"
	@$(call cmake_build,lint,-DRANKPLANE_WERROR=ON -DRANKPLANE_BINDINGS=ON -DRANKPLANE_CORE_TESTS=ON \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)")
	@echo "C++ warnings: none"

# The package itself is not needed: what is tested here is the wheel, in an environment of its own.
wheel: $(DONE)/wheel ## Build a wheel and a source distribution into dist, and test the wheel (PYTEST_ARGS=tests for all tests)
	@$(BIN)/python .ci/wheel.py $(PYTEST_ARGS)

sanitize: $(DONE)/build ## Run the tests of the core under the address, undefined-behaviour and thread sanitizers
	@$(call cmake_build,sanitize,-DRANKPLANE_SANITIZE=ON -DRANKPLANE_CORE_TESTS=ON)
	@printf "address and undefined behaviour: "; build/sanitize/tests/core/core_tests
	@$(call cmake_build,sanitize-threads,-DRANKPLANE_SANITIZE_THREADS=ON -DRANKPLANE_CORE_TESTS=ON)
	@printf "threads: "; build/sanitize-threads/tests/core/core_tests

# With Clang, where it is complete: its fuzzer sees which code of the core an input reached.
FUZZ_CXX = $(shell echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, long) { return 0; }' \
  | clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null > /dev/null 2>&1 && echo -DCMAKE_CXX_COMPILER=clang++)
fuzz: $(DONE)/package $(DONE)/fuzz ## Run all fuzzers for FUZZ_SECONDS in all, with sanitizers (FUZZ_ARGS="--only bindings")
	@$(call cmake_build,fuzz/build,-DRANKPLANE_FUZZ=ON -DRANKPLANE_BINDINGS=ON $(FUZZ_CXX) \
	  -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)")
	@$(BIN)/python tests/fuzz/drive.py --seconds $(FUZZ_SECONDS) --build build/fuzz/build $(FUZZ_ARGS)

format: $(DONE)/lint ## Rewrite the sources the way lint wants them
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CXX_SOURCES)

clean: ## Remove .venv, builds and caches
	rm -rf $(VENV) build dist docs/gallery docs/generated .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call cmake_build,folder under build/,options): quiet unless it fails. CMake itself knows what has changed.
define cmake_build
mkdir -p build/$(1); { cmake -S . -B build/$(1) $(2) && cmake --build build/$(1); } > build/$(1).log 2>&1 \
  || { cat build/$(1).log; exit 1; }
endef

# $(call install,sets of requirements)
install = $(BIN)/python .ci/requirements.py $(1) > $(VENV)/requirements.txt && $(BIN)/pip install -qq -r $(VENV)/requirements.txt

$(DONE)/venv:
	@echo "setting up $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit("rankplane needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(DONE) && touch $@

$(DONE)/build: $(DONE)/venv pyproject.toml .ci/requirements.py
	@echo "installing what the build needs"
	@$(call install,build)
	@$(call install,build-tools)
	@touch $@

# Without build isolation: the build folder then keeps pointing at the same nanobind, and only what has changed is compiled again.
# The package is installed in place, so changes to Python files need no build, but for new folders of them.
$(DONE)/package: $(DONE)/run $(CORE) $(wildcard src/rankplane/*/__init__.py)
	@echo "building the package"
	@$(BIN)/pip install -qq --no-build-isolation --no-deps --editable .
	@touch $@

$(DONE)/run $(DONE)/test $(DONE)/lint $(DONE)/bench $(DONE)/paper $(DONE)/docs $(DONE)/wheel $(DONE)/fuzz $(DONE)/spark: $(DONE)/%: $(DONE)/build
	@echo "installing what \"$*\" needs"
	@$(call install,$*)
	@touch $@
