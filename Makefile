# onnxtrain: every everyday command. Each target does the set-up that it needs by itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help
FUZZ_SECONDS ?= 60
BENCH_ARGS ?=
ROUNDS ?=
QUICK ?=
export PYTEST_ARGS
empty :=
export NINJA_STATUS := [%f/%t, %e s]$(empty) $(empty)
PRODUCT := onnxtrain_cli onnxtrain_shared _native
FIGURES := $(shell tools/figures.sh --names)

PY := .venv/bin/python

.PHONY: help build mpi demo test test-versions bench wheel dist deb docs docs-cli format format-check ruff lint layers asan tsan fuzz clean $(FIGURES:%=figures-%)

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-24s %s\n", $$1, $$2}' Makefile
	@tools/figures.sh --help | sed 's/^/  make figures-/'

# $(call compile,PRESET[,TARGETS]): libraries, configure when needed, compile.
define compile
	@tools/libonnx.sh >/dev/null
	@if [[ ! -e build/$(1)/build.ninja ]]; then \
	  echo "configure: build/$(1)"; cmake --preset $(1) >build-$(1).log 2>&1 || { cat build-$(1).log; rm -f build-$(1).log; exit 1; }; \
	  mv build-$(1).log build/$(1)/configure.log; fi
	@cmake --build build/$(1) $(if $(2),--target $(2))
endef

build:  ## compile the command line tool, the shared library and the Python module
	@tools/setup.sh build
	$(call compile,release,$(PRODUCT))
	@tools/mpi_plugin.sh

mpi:  ## build the plug-in for the MPI that is installed (docs/distributed.md)
	@tools/mpi_plugin.sh

demo:  ## train the sample model from nothing and show the result (compiles the command line tool alone)
	@tools/setup.sh build
	$(call compile,release,onnxtrain_cli)
	@.venv/bin/onnxtrain demo

test:  ## all suites: lint, C++, Python with PyTorch and scikit-learn, TensorFlow and Keras
	@tools/setup.sh build test
	$(call compile,release,$(PRODUCT) onnxtrain_tests)
	@tools/mpi_plugin.sh
	@tools/test.sh

test-versions: build  ## converters with other versions of their frameworks (tools/versions.sh has the table)
	@tools/setup.sh build test
	@tools/versions.sh

bench: build  ## speed beside other engines; QUICK=1: a few minutes; ROUNDS=5, BENCH_ARGS="--workloads W1,W4"
	@tools/setup.sh build test
	@tools/bench.sh $(if $(QUICK),--quick) $(if $(ROUNDS),--rounds $(ROUNDS)) $(BENCH_ARGS)

wheel:  ## dist/*.whl: the Python package with the command line tool, for any Linux with glibc 2.34 (no compiler needed)
	@tools/setup.sh build
	@tools/libonnx.sh >/dev/null
	@tools/package/wheel.sh

dist:  ## dist/*.tar.gz: command line tool, C and C++ library, headers, CMake and pkg-config files, licences
	@tools/setup.sh build
	$(call compile,dist,onnxtrain_cli onnxtrain_shared)
	@tools/package/archive.sh TGZ

deb:  ## dist/*.deb: the same as a Debian package
	@tools/setup.sh build
	$(call compile,dist,onnxtrain_cli onnxtrain_shared)
	@tools/package/archive.sh DEB

docs: build  ## the documents as a site in build/site
	@tools/docs_site.sh

docs-cli: build  ## write the reference part of docs/cli.md from the program's option tables
	@$(PY) tools/docs_cli.py

$(FIGURES:%=figures-%): figures-%: build
	@tools/setup.sh build test
	@tools/figures.sh $*

layers:  ## who includes whom: forbidden includes and cycles; the shape of the code
	@python3 tools/check_layers.py
	@python3 tools/check_code.py

format:  ## clang-format over all C++ files
	@tools/setup.sh build lint
	@tools/format.sh

format-check:  ## fail when `make format` would change something
	@tools/setup.sh build lint
	@tools/format.sh --check

ruff:  ## ruff over all Python files
	@tools/setup.sh build lint
	@.venv/bin/ruff check .

lint:  ## ruff, clang-format, layers, and clang-tidy over every C++ source (`make test`: over what changed)
	@tools/setup.sh build lint
	@tools/libonnx.sh >/dev/null
	@tools/lint.sh

asan:  ## C++ tests under the address and undefined behaviour sanitizers
	@tools/setup.sh build
	$(call compile,asan)
	@ctest --test-dir build/asan --output-on-failure -j 2

tsan:  ## C++ tests under the thread sanitizer
	@tools/setup.sh build
	$(call compile,tsan)
	@ctest --test-dir build/tsan --output-on-failure -j 2

fuzz:  ## libFuzzer targets, FUZZ_SECONDS each
	@tools/setup.sh build fuzz
	$(call compile,fuzz,fuzzers)
	@tools/fuzz.sh $(FUZZ_SECONDS)

clean:  ## remove build/ (the virtual environments and the machine's cache stay)
	rm -rf build python/onnxtrain/_native*.so
