# onnxtrain: every everyday command. Each target does the set-up that it needs by itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
FUZZ_SECONDS ?= 60
PYTEST_ARGS ?=
empty :=
export NINJA_STATUS := [%f/%t, %e s]$(empty) $(empty)

.PHONY: help build demo test bench format format-check lint layers asan tsan fuzz clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

# $(call compile,PRESET[,TARGET]): libraries, configure when needed, compile.
define compile
	@tools/libonnx.sh >/dev/null
	@if [[ ! -e build/$(1)/build.ninja ]]; then \
	  echo "configure: build/$(1)"; cmake --preset $(1) >build-$(1).log 2>&1 || { cat build-$(1).log; rm -f build-$(1).log; exit 1; }; \
	  mv build-$(1).log build/$(1)/configure.log; fi
	@cmake --build build/$(1) $(if $(2),--target $(2))
endef

build:  ## compile the command line tool, the libraries and the Python module
	@tools/setup.sh build
	$(call compile,release)

demo: build  ## train the sample model from nothing and show the result
	@.venv/bin/onnxtrain demo

test: build  ## all tests: C++, layers, Python
	@tools/setup.sh build test
	@ctest --test-dir build/release --output-on-failure -j 2
	@$(PY) tools/check_layers.py
	@$(PY) tools/check_code.py
	@$(PY) -m pytest -n 2 $(PYTEST_ARGS)

bench: build  ## speed of single operators and of whole models
	@tools/setup.sh build test
	@tools/bench.sh

layers:  ## who includes whom: forbidden includes and cycles; the shape of the code
	@python3 tools/check_layers.py
	@python3 tools/check_code.py

format:  ## clang-format over all C++ files
	@tools/setup.sh build lint
	@tools/format.sh

format-check:  ## fail when `make format` would change something
	@tools/setup.sh build lint
	@tools/format.sh --check

lint: build format-check layers  ## clang-tidy over all C++ files
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

clean:  ## remove build/ (the virtual environment and the machine's cache stay)
	rm -rf build python/onnxtrain/_native*.so
