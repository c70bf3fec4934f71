# Two targets do everything from a fresh checkout: `make demo` runs the main job, `make test` passes the tests. Both make
# the virtual environment .venv first, so that nothing is installed outside this folder.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

# Images of containers often set this. The tests start hundreds of Python processes, and each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: broker-assignor demo docs hunt mutants test test-kafka test-live test-long test-smoke test-upstream test-programs lint nightly bench bench-confluent bench-coordinator bench-dispatcher bench-live bench-quality bench-spark readme clean

demo: $(VENV)/.all
	$(BIN)/loadwise demo $(DEMO)

# The default tier. Five processes even on two cores: many tests wait for clients and their timeouts. One has all of Spark.
WORKERS ?= 5
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(TESTS)

# The real tier: against Apache Kafka, beside Java and librdkafka members; needs a JDK 17 and Maven.
KAFKA ?= kafka and not live and not long
test-kafka: $(VENV)/.dev
	$(BIN)/python tests/support/fetched.py
	$(BIN)/python -m pytest -m "$(KAFKA)" -n 3 --dist loadgroup $(TESTS)

# Its scenes of real groups under a load that shifts. They measure times, so nothing else runs beside them.
# Ten calm minutes: make test-live CALM_S=600 TESTS=tests/live/test_steady_and_restart.py::test_steady
CALM_S ?= 120
test-live: $(VENV)/.dev
	LOADWISE_CALM_S=$(CALM_S) $(BIN)/python -m pytest -m live --timeout=$$((2400 + $(CALM_S))) -o faulthandler_timeout=$$((2350 + $(CALM_S))) -n 1 --dist loadgroup $(TESTS)

# What guards a landing of them: a group of each client is relieved and loses no record, however long it takes.
test-smoke:
	$(MAKE) test-live TESTS=tests/live/test_smoke.py

# Days of a group in virtual time, under loadwise and other assignors: a table (docs/live.md).
bench-live: $(VENV)/.all
	$(BIN)/python -m benchmarks.live $(LIVE)

# How even assignments are and how much they move, beside other assignors: tables (docs/quality.md).
bench-quality: $(VENV)/.all
	$(BIN)/python -m benchmarks.quality $(QUALITY)

# The long tier: soaks, kills and random walks with a fresh seed; then other projects' own tests. SEED repeats a run. MINUTES=5
# begins no test after five minutes, and leaves out the last part.
SEED ?= $(shell date +%s)
MINUTES ?=
LONG ?= (long or hypothesis and not kafka) and not live
test-long: SEED := $(SEED)
test-long: $(VENV)/.dev
	@echo "the seed of this run: make test-long SEED=$(SEED)"
	LOADWISE_SEED=$(SEED) $(BIN)/python -m pytest -m "$(LONG)" --hypothesis-profile=long-tier --hypothesis-seed=$(SEED) --shuffle=$(SEED) $(if $(MINUTES),--minutes=$(MINUTES)) -n 2 --dist loadgroup $(TESTS)
ifeq ($(MINUTES)$(TESTS),)
	$(MAKE) test-upstream
endif

# All live scenes and the whole long tier, two hours at most: a table of figures and limits in docs/lab; exit code 1 if one was
# missed. NIGHTLY="--from drift" goes on with a scene, NIGHTLY="drift slow" plays these alone.
nightly: $(VENV)/.dev
	$(BIN)/python tests/nightly/run.py --long "$(LONG)" $(NIGHTLY)

# The default tier many times, each in another order, and which tests do not pass every time. HUNT="--busy 2" adds busy loops.
RUNS ?= 20
hunt: $(VENV)/.dev
	$(BIN)/python tests/hunt/run.py --runs $(RUNS) --workers $(WORKERS) $(HUNT)

# Change a sample of the code, one place at a time, and show which changes the default tier does not notice (CONTRIBUTING.md).
# SEED repeats a sample; EACH=15 FOLDERS="protocol assignor/live" takes a smaller one.
EACH    ?= 100
FOLDERS ?=
mutants: SEED := $(SEED)
mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py --seed $(SEED) --each $(EACH) $(if $(FOLDERS),--folders "$(FOLDERS)") $(MUTANTS)

# Other projects' own tests against our coordinator: kafka-python's, and franz-go's where there is Go.
test-upstream: $(VENV)/.dev
	$(BIN)/python tests/upstream/run.py $(CLIENTS)

# Programs of other people's, installed and run on Apache Kafka and on our coordinator: the table docs/lab/programs.md.
test-programs: $(VENV)/.dev
	$(BIN)/python tests/programs/run.py $(PROGRAMS)

# The assignor for Apache Kafka brokers: tests it and makes assignor/broker/target/loadwise-assignor-1.jar. It needs a JDK 17 and
# Maven (docs/steering-note.md).
broker-assignor:
	cd assignor/broker && mvn -q -B package

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Groups, heartbeats and records over sockets, beside Apache Kafka where there is a JDK and Maven, and kfake where there is
# Go: docs/benchmarks.md.
bench-coordinator: $(VENV)/.all
	$(BIN)/python -m benchmarks.coordinator $(COORDINATOR)

# format("loadwise") beside Spark's own format("kafka"): a table. It needs a JDK 17 and Maven, and
# makes an environment of its own where .venv has another PySpark than the connector is for.
bench-spark: $(VENV)/.all
	$(BIN)/python -m benchmarks.spark $(SPARK)

# How fast confluent-kafka reads in a group of ours, beside its stock consumer: docs/confluent-kafka.md.
bench-confluent: $(VENV)/.all
	$(BIN)/python -m benchmarks.confluent $(CONFLUENT)

# Producers with a dispatcher beside the clients' own partitioners: in virtual time, hot keys, and for real. --apache and
# --java need a JDK and Maven.
bench-dispatcher: $(VENV)/.all
	$(BIN)/python -m benchmarks.dispatcher.virtual
	$(BIN)/python -m benchmarks.dispatcher.hot_keys
	$(BIN)/python -m benchmarks.dispatcher $(DISPATCHER)

# How fast we are beside Java's assignors, e.g. BENCH="--sizes 1000,10000": docs/benchmarks.md.
bench: $(VENV)/.all
	$(BIN)/python -m benchmarks.speed $(BENCH)

# The README's table and picture: the demo's second act is played, for two minutes on a quiet machine.
readme: $(VENV)/.all
	$(BIN)/python -m benchmarks.readme

# The documentation site, build/docs/index.html. Warnings and broken internal links are errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "file://$(CURDIR)/build/docs/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "loadwise needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

$(VENV)/.all: $(VENV)/bin/python pyproject.toml
	@echo "installing loadwise and all its optional parts into $(VENV) (PySpark alone is 400 MB; the first time takes minutes)"
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.all
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

# Sphinx and the package: docs/conf.py mocks clients, Spark, and what else extras bring.
$(VENV)/.docs: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --group docs
	@touch $@

clean:
	rm -rf $(VENV) .venv-pyspark-* assignor/broker/target build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
