# Every target sets up what it needs: a virtual environment in .venv with the package and its tools.
PYTHON ?= python3
BIN := .venv/bin
READY := environment
LEAN := lean-environment
SEED ?=
WHAT ?=
SEEDS ?= 1000
ROW_SEEDS ?= 100
NEMESIS ?=
FRANZ_GO ?=
PLAN ?=
MUTANTS ?=
CHURN ?=
CLIENTS ?=
PARSERS ?=

BENCHES := core full budgets rebalance scale turns cold-reads churn cluster compaction spark tls security clients registry
PROOFS := sim mutants guarantees golden interop franz-go fuzz parsers upgrade secure client-bounds nemesis pipeline-nemesis registry-nemesis registry topologies \
	examples connect docs

.DEFAULT_GOAL := help
.PHONY: help $(READY) $(LEAN) run test build java check types ci docs shape clean bench prove prove-docs $(filter-out docs,$(PROOFS))
.PHONY: $(addprefix bench-,$(BENCHES))

help:
	@echo "make run                the demo: a log, a stream of orders, revenue by region from a pipeline on Spark"
	@echo "make test               the tests, on the Python files and on the compiled modules"
	@echo "make check              format, lint, types, generated pages; installs neither Spark nor other clients"
	@echo "make types              the types with all that make test installs"
	@echo "make ci                 check, types and test, as CI runs them"
	@echo "make build              compile the modules of the data path"
	@echo "make docs               write docs/generated from the declarations, and the pages as a site to build/site"
	@echo "make shape              figures of the tree: sizes, folders, import cycles, the walks of produce and fetch"
	@echo "make bench WHAT=...     $(BENCHES)"
	@echo "make prove WHAT=...     $(PROOFS)"
	@echo "make clean              remove what was built and installed here"
	@echo
	@echo "Options of single proofs: SEED=17 or SEEDS=1000 (sim), MUTANTS=name (mutants), ROW_SEEDS=100 (guarantees),"
	@echo "NEMESIS='kill --seconds 60' (nemesis), FRANZ_GO='--nodes 1' (franz-go), CHURN='--minutes 2' (churn)."

# Figures beside Apache Kafka and the budgets of the design; without WHAT the four of the release.
bench: $(if $(WHAT),bench-$(WHAT),bench-core bench-compaction bench-spark bench-cluster)

# What is too long or too heavy for make test, each a target of its own.
prove:
	@test -n '$(WHAT)' || { echo "say which: make prove WHAT=sim, one of: $(PROOFS)"; exit 2; }
	@$(MAKE) --no-print-directory $(patsubst docs,prove-docs,$(WHAT))

# .venv with the package and its tools; what is there already is not installed again.
$(READY):
	@$(PYTHON) -m tools.environment dev

# .venv with what check and docs need at least: linters and the type checker, neither Spark nor other clients.
$(LEAN):
	@$(PYTHON) -m tools.environment check

# A log, a stream of orders, and revenue by region from a pipeline on Spark; until Ctrl-C on a terminal, elsewhere for a
# minute, and then every result is counted again. It installs what the demo needs, and no tests or linters.
run:
	@$(PYTHON) -m tools.environment demo
	@exec $(BIN)/millbeck demo

# Its parts, and at the end what came of each and how long it took: tools/run_tests.py.
test: $(READY)
	@$(BIN)/python -m tools.run_tests

# Every operator of a topology against plain Python, and kept checkpoints, on Spark; about five minutes.
topologies: $(READY) build java
	$(BIN)/python -m pytest -q tests/spark -o timeout=600

# Connectors against what they read and write: PostgreSQL where Debian has it, Kafka's own workers; workers are killed.
connect: $(READY) build java
	$(BIN)/python tools/peers.py install
	$(BIN)/python -m pytest -q -n 0 tests/interop/connect tests/spark/connect -o timeout=900

# The examples, those of a cluster and in Java too; Apache Kafka's client is fetched on first use.
examples: $(READY) build java
	$(BIN)/python tools/peers.py install
	$(BIN)/python -m pytest -q tests/examples tests/spark/test_examples.py -m 'long or not long' -o timeout=600

# Spark runs on the machine's Java, on Debian's or on PyPI's.
java: $(READY)
	@$(BIN)/python -m tools.java >/dev/null

# The compiled modules, made again where their source has changed.
build: $(READY)
	@$(BIN)/python -m tools.compiled ensure

# What is not installed is Any to the type checker, as pyproject.toml lists.
check: $(LEAN)
	$(BIN)/ruff format --check src tests tools bench nemesis
	$(BIN)/ruff check src tests tools bench nemesis
	$(BIN)/mypy
	$(BIN)/python -m tools.compiled check
	$(BIN)/python -m tools.docs --check

# The types once more, with everything installed that check takes for Any.
types: $(READY)
	$(BIN)/mypy

ci: check types test

# Rewrites the recorded dialogues; look at the difference before you keep it.
golden: $(READY)
	MILLBECK_REWRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/golden

# The generated pages, and then the site; a link that leads nowhere is an error.
docs:
	@$(PYTHON) -m tools.environment docs
	$(BIN)/python -m tools.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "the site: build/site/index.html"

# Does what the pages say: every console and Python block that does not say why not.
prove-docs: $(READY) java
	$(BIN)/python -m pytest -q -n 0 tests/docs -m 'long or not long'

shape: $(READY)
	@$(BIN)/python -m tools.shape

# make sim: many seeds, of a whole cluster and of its parts. make sim SEED=17: that one; what fails is made smaller.
sim: $(READY)
	$(BIN)/python -m millbeck.simulation.runs.campaign --seed='$(SEED)' --seeds=$(SEEDS) --plan='$(PLAN)'
	@test -n '$(PLAN)' || $(BIN)/python -m pytest -q -n 2 tests/sim --seed='$(SEED)' --seeds=$(SEEDS)

# Mistakes made on purpose, each of which the simulation has to notice, and which of its checkers does.
mutants sim-mutants: $(READY)
	MILLBECK_PURE=1 $(BIN)/python -m millbeck.simulation.mutants.command $(MUTANTS)
	@test -n '$(MUTANTS)' || MILLBECK_PURE=1 $(BIN)/python -m pytest -q -n 2 -m long tests/sim

# What acks and min.insync.replicas promise, and where they do not: each row of the table as a simulation.
guarantees: $(READY)
	$(BIN)/python -m millbeck.simulation.runs.guarantees --seeds=$(ROW_SEEDS)

# Real clients in five languages and Apache Kafka itself, fetched on first use.
interop: $(READY)
	$(BIN)/python tools/peers.py install
	$(BIN)/python -m tests.interop

# franz-go's own integration tests against one node and three, with and without connections that die; about a quarter of
# an hour. FRANZ_GO='--nodes 1 --chaos never --records 5000'
franz-go: $(READY) build
	$(BIN)/python -m tests.interop.franz_go_suite $(FRANZ_GO)

# 100,000 hostile frames, handshakes and ten million bytes of logins at a node while a steady client is timed.
fuzz: $(READY)
	$(BIN)/python -m pytest -q -s tests/fuzz/long

# The parsers of what strangers send, each for a minute, guided by coverage (atheris: Linux, or a clang to build it).
# PARSERS='jwt der --seconds 600'
parsers: $(READY)
	$(BIN)/python -m pip install -q -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz.parsers $(PARSERS)

# A rolling upgrade of three nodes under load: one that knows less than the others is replaced, then the next.
upgrade: $(READY)
	$(BIN)/python -m pytest -q tests/e2e/long/test_cluster_upgrade.py

# What the Python clients keep to: memory beside a stalled broker, and membership of a program that blocks.
client-bounds: $(READY)
	$(BIN)/python -m pytest -q -s tests/e2e/long/test_client_bounds.py

# Three nodes in use get TLS, logins and ACLs by rolling restarts, and lose nothing.
secure: $(READY)
	$(BIN)/python -m pytest -q tests/e2e/long/test_cluster_secured.py

# Harm to a cluster of real processes (as root): kills, pauses, partitions, power cuts, full disks. NEMESIS='kill --seconds 60'
nemesis: $(READY) build
	$(BIN)/python -m nemesis $(NEMESIS)

# Twenty kills of Spark's driver, its workers and brokers while the demo's pipeline runs; its output is counted again.
# NEMESIS='--kills 5 --seed 17'
pipeline-nemesis: $(READY) build java
	$(BIN)/python -m nemesis.pipeline $(NEMESIS)

# Twenty clients that register schemas for five minutes while the registry's leader and brokers are killed.
# NEMESIS='--seconds 60 --seed 17'
registry-nemesis: $(READY) build
	$(BIN)/python -m nemesis.registry $(NEMESIS)

# The registry: 20,000 generated requests, hostile schemas, clients of other languages, and Avro's checker in Java.
registry: $(READY) java
	$(BIN)/python -m pytest -q -n 0 -s tests/fuzz/long/test_registry_calls.py
	$(BIN)/python -m tests.interop tests/interop/test_registry_clients.py tests/interop/test_second_voices.py \
		tests/interop/test_schema_validation.py
	$(BIN)/python -m pytest -q tests/sim/test_registry_run.py --seeds=$(SEEDS)

bench-core: $(READY) build
	$(BIN)/python -m bench

bench-full: $(READY) build
	$(BIN)/python -m bench --full

# The design's budgets, and replaying a cold log beside producers and tailing readers (as root, for the memory limit).
bench-budgets: $(READY) build
	$(BIN)/python -m bench.budgets

# Consumer groups: one of ten members leaves, beside Kafka, and a thousand join at once.
bench-rebalance: $(READY) build
	$(BIN)/python -m bench.rebalance

# Many partitions on three nodes, and in the simulator.
bench-scale: $(READY) build
	$(BIN)/python -m bench.scale

# How long a turn of the event loop is with 10,000 partitions.
bench-turns: $(READY) build
	$(BIN)/python -m bench.turns

bench-cold-reads: $(READY) build
	$(BIN)/python -m bench.cold_reads

# Connections, topics and long keys that come and go beside a steady client. CHURN='--minutes 2'
bench-churn: $(READY) build
	$(BIN)/python -m bench.churn $(CHURN)

bench-cluster: $(READY) build
	$(BIN)/python -m bench.cluster

bench-compaction: $(READY) build
	$(BIN)/python -m bench.compaction

bench-tls: $(READY) build
	$(BIN)/python -m bench.tls

# What decisions of the authorizer, logins and quotas cost, and how exactly quotas are kept, beside Kafka.
bench-security: $(READY) build
	$(BIN)/python -m bench.security

# The Python clients beside aiokafka and confluent-kafka; CLIENTS='--rounds 1 --records 200000'
bench-clients: $(READY) build
	$(BIN)/python -m bench.clients $(CLIENTS)

# The schema registry with 10,000 subjects.
bench-registry: $(READY) build
	$(BIN)/python -m bench.registry

bench-spark: $(READY) build java
	$(BIN)/python -m bench.spark

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.so' -delete
