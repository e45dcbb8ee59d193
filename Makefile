# Every target sets up what it needs: a virtual environment in .venv with the package and its tools.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
SEED ?=
# The packages that have compiled modules: their tests run twice, on the Python files and on the extensions.
COMPILED_TESTS := $(addprefix tests/,$(addprefix unit/,kernel host records wire storage replication server) contract model/storage sim)
SEEDS ?= 1000
ROW_SEEDS ?= 100
NEMESIS ?=
FRANZ_GO ?=
PLAN ?=
MUTANTS ?=

.PHONY: run test build java topologies check ci bench bench-full budgets rebalance scale cold-reads interop franz-go sim sim-mutants guarantees fuzz upgrade nemesis pipeline-nemesis docs golden clean

$(READY): pyproject.toml setup.py
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv 2>/dev/null \
		|| { $(PYTHON) -m pip install --quiet --user virtualenv && $(PYTHON) -m virtualenv --quiet .venv; }
	@echo "installing millbeck and its tools into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# A log, a stream of orders, and revenue by region from a pipeline on Spark; until Ctrl-C on a terminal, elsewhere for a
# minute, and then every result is counted again.
run: $(READY) java
	@exec $(BIN)/millbeck demo

test: $(READY) build java
	$(BIN)/python -m pytest -q -n 2 tests --ignore tests/interop --ignore tests/fuzz/long --ignore tests/e2e/long --ignore tests/spark
	$(BIN)/python -m pytest -q tests/spark -m 'not long'
	MILLBECK_COMPILED=1 $(BIN)/python -m pytest -q -n 2 $(COMPILED_TESTS) --seeds=10

# Every operator of a topology against plain Python, on Spark; about four minutes.
topologies: $(READY) build java
	$(BIN)/python -m pytest -q tests/spark -o timeout=600

# Spark runs on the machine's Java, on Debian's or on PyPI's.
java: $(READY)
	@$(BIN)/python tools/java.py >/dev/null

# The compiled modules, made again where their source has changed.
build: $(READY)
	@$(BIN)/python tools/compiled.py check >/dev/null || $(BIN)/python tools/compiled.py build

check: $(READY)
	$(BIN)/ruff format --check src tests tools bench nemesis
	$(BIN)/ruff check src tests tools bench nemesis
	$(BIN)/mypy
	$(BIN)/python tools/compiled.py check
	$(BIN)/python tools/docs.py --check

ci: check test

# Rewrites the recorded dialogues; look at the difference before you keep it.
golden: $(READY)
	MILLBECK_REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/unit/coordinator

docs: $(READY)
	$(BIN)/python tools/docs.py

# make sim: many seeds, of a whole cluster and of its parts. make sim SEED=17: that one; what fails is made smaller.
sim: $(READY)
	$(BIN)/python -m millbeck.testing.campaign --seed='$(SEED)' --seeds=$(SEEDS) --plan='$(PLAN)'
	@test -n '$(PLAN)' || $(BIN)/python -m pytest -q -n 2 tests/sim --seed='$(SEED)' --seeds=$(SEEDS)

# Mistakes made on purpose, each of which the simulation has to notice, and which of its checkers does.
sim-mutants: $(READY)
	MILLBECK_PURE=1 $(BIN)/python -m millbeck.testing.mutants.command $(MUTANTS)

# What acks and min.insync.replicas promise, and where they do not: each row of the table as a simulation.
guarantees: $(READY)
	$(BIN)/python -m millbeck.testing.guarantees --seeds=$(ROW_SEEDS)

# Real clients in five languages and Apache Kafka itself, fetched on first use.
interop: $(READY)
	$(BIN)/python tools/peers.py install
	$(BIN)/python -m tests.interop

# franz-go's own integration tests against one node and three, with and without connections that die; about a quarter of
# an hour. FRANZ_GO='--nodes 1 --chaos never --records 5000'
franz-go: $(READY) build
	$(BIN)/python -m tests.interop.franz_go_suite $(FRANZ_GO)

# 100,000 hostile frames at a node while a steady client is timed.
fuzz: $(READY)
	$(BIN)/python -m pytest -q -s tests/fuzz/long

# A rolling upgrade of three nodes under load: one that knows less than the others is replaced, then the next.
upgrade: $(READY)
	$(BIN)/python -m pytest -q tests/e2e/long

# Harm to a cluster of real processes (as root): kills, pauses, partitions, power cuts, full disks. NEMESIS='kill --seconds 60'
nemesis: $(READY) build
	$(BIN)/python -m nemesis $(NEMESIS)

# Twenty kills of Spark's driver, its workers and brokers while the demo's pipeline runs; its output is counted again.
# NEMESIS='--kills 5 --seed 17'
pipeline-nemesis: $(READY) build java
	$(BIN)/python -m nemesis.pipeline $(NEMESIS)

bench: $(READY) build java
	$(BIN)/python -m bench
	$(BIN)/python -m bench.compaction
	$(BIN)/python -m bench.spark
	$(BIN)/python -m bench.cluster

bench-full: $(READY) build
	$(BIN)/python -m bench --full

# The design's budgets, and replaying a cold log beside producers and tailing readers (as root, for the memory limit).
budgets: $(READY) build
	$(BIN)/python -m bench.budgets

# Consumer groups: one of ten members leaves, beside Kafka, and a thousand join at once.
rebalance: $(READY) build
	$(BIN)/python -m bench.rebalance

# Many partitions on three nodes, and in the simulator.
scale: $(READY) build
	$(BIN)/python -m bench.scale

cold-reads: $(READY) build
	$(BIN)/python -m bench.cold_reads

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete
