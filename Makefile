PYTHON ?= python3
BIN := .venv/bin
PROVEN_PACKAGES := checker judging laws
# Its tests need xgboost, lightgbm and catboost, which are not installed for `make test`.
ELSEWHERE := src/dokimos/laws/models/boosted.py
LINT := $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy

.PHONY: demo docs state test test-slow lint lock clean browser
.DELETE_ON_ERROR:

# Bytecode is kept: hundreds of tests start a Python, which would compile all of Dokimos each time. And the
# processes that run tests are as many as there are cores: further threads would only get in their way.
unexport PYTHONDONTWRITEBYTECODE
test test-slow: export OMP_NUM_THREADS = 1
test test-slow: export OPENBLAS_NUM_THREADS = 1

demo: .venv/.base
	$(call dokimos,generate --suite quick --out demo/quick)
	$(call dokimos,check demo/quick)
	$(call dokimos,profile demo/quick --jobs 2)
	$(call dokimos,verifiers install marabou)
	$(call dokimos,run demo/quick --verifier marabou --timeout 10 --jobs 2 --out demo/run)
	$(call dokimos,judge demo/run) || [ $$? -eq 1 ]   # 1: wrong answers were found, which is a result
	$(call dokimos,report demo/run --html demo/report.html)
	@echo "The report is demo/report.html"

# studies/results/state-of-the-verifiers.md; takes hours, and goes on where it was interrupted.
state: .venv/.base
	@for verifier in marabou vibecheck neuralsat never2; do $(BIN)/dokimos verifiers install $$verifier || exit; done
	$(BIN)/dokimos-studies state $(STATE)
	$(if $(STATE),,$(BIN)/dokimos-studies state --group study)

# The tests that must not be disturbed run in one process, the others in two that share them, and ruff and mypy
# give way to all of these. One is shown at work; what the others say comes at the end. (Not by $(MAKE) lint: make
# runs lines that name itself even where it is only to show them.)
test: .venv/.dev browser
	@$(BIN)/dokimos verifiers install marabou || echo "Marabou could not be installed: its tests are left out"
	@logs=$$(mktemp -d); share=$$(mktemp -d); trap 'rm -rf "$$logs" "$$share"' EXIT; $(BIN)/coverage erase; \
	others="nice -n 5 $(BIN)/pytest -o console_output_style=classic --part others --share=$$share --coverage"; \
	$$others >"$$logs/1" 2>&1 & begun=$$!; \
	$(BIN)/pytest --part alone >"$$logs/2" 2>&1 & begun="$$begun $$!"; \
	nice sh -c '$(LINT)' >"$$logs/3" 2>&1 & begun="$$begun $$!"; \
	$$others; ended=$$?; for process in $$begun; do wait $$process || ended=$$?; done; \
	cat "$$logs"/*; [ $$ended -eq 0 ]
	@$(BIN)/coverage combine --quiet
	@for package in $(PROVEN_PACKAGES); do \
	  echo "coverage of $$package:"; \
	  $(BIN)/coverage report --include="src/dokimos/$$package/*" --omit="$(ELSEWHERE)" \
	    --skip-covered --fail-under=95 || exit 1; \
	done

test-slow: .venv/.dev
	$(BIN)/pytest -m slow

# build/docs/index.html, which needs no network to be read.
docs: .venv/.dev
	$(BIN)/python -m sphinx --nitpicky --fail-on-warning --quiet -b html docs build/docs
	@echo "The documentation is build/docs/index.html"

lint: .venv/.dev
	$(LINT)

lock:
	$(PYTHON) scripts/lock.py

clean:
	rm -rf .venv demo dist build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis

browser:
	@scripts/ensure_browser.sh

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Dokimos needs Python 3.11 or later; say which with: make PYTHON=/path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv

# A stamp says that what it is named for is installed; it is older than the files that say what that is
# when they have changed since; then the packages are installed again, for what they declare is read from that.
# What is listed is all that is needed, so it is installed as listed, quickly: wheels only, each with its hash.
# Then pip does what was left out, looks whether this machine's torch needs more, and says what is wrong. Our own
# packages are built by what is listed, too. Modules are compiled when they are imported, which few of them are:
# the largest of those that tests need are imported meanwhile.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps
LISTED := --require-hashes --only-binary :all: -r
.venv/.base .venv/.dev: .venv/.%: $(BIN)/python pyproject.toml studies/pyproject.toml requirements/%.txt
	@echo "Installing requirements/$*.txt"; \
	scripts/install_quickly.sh $(BIN)/python requirements/$*.txt; \
	$(BIN)/python -c 'import torch, sklearn.ensemble, pandas, onnx, distributed' 2>/dev/null & \
	$(PIP_INSTALL) $(LISTED) requirements/$*.txt && \
	$(PIP_INSTALL) --no-build-isolation -e . -e ./studies && \
	{ $(BIN)/pip check >/dev/null || $(PIP_INSTALL) $(LISTED) requirements/gpu.txt && $(BIN)/pip check; } && wait
	@touch $@

define dokimos
@echo '$$ dokimos $(1)'; $(BIN)/dokimos $(1)
endef
