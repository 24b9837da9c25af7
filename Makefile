# Each target makes what it needs, once: stamps under build/ remember what was made from which file.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

EVENTS ?= 1000000
GAMES ?= 30
RATE ?=
export GAMELAKE_LAKEHOUSE ?= file://$(CURDIR)/build/demo/lakehouse

python := .venv/bin/python
stamps := build/stamps
prerequisites := compose/prerequisites.sh
# A test's JVMs live for seconds: what the second compiler would do for them comes too late, and takes a third of the time.
for_seconds := export JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 &&
with_java := export JAVA_HOME && JAVA_HOME="$$($(prerequisites) java)" &&
# Maven 3.8 on a new JDK warns about its own libraries at every start; an old JDK does not know the option, hence the first.
maven_options := -XX:+IgnoreUnrecognizedVMOptions --sun-misc-unsafe-memory-access=allow
maven := $(prerequisites) maven >/dev/null && $(with_java) MAVEN_OPTS="$(maven_options) $$MAVEN_OPTS" mvn --quiet --batch-mode package --file
compile := .venv/bin/uv pip compile pyproject.toml --quiet --no-config --universal --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
environment := $(stamps)/environment
jars := $(stamps)/spark-jars $(stamps)/kafka-jars $(stamps)/registry

stack := compose/stack.sh
players_to_http := --target http --url http://ingest:8000 --keys-file /run/secrets/ingest-keys
players_to_kafka := --target kafka --bootstrap-servers kafka:9092 --kafka-credentials-file /run/secrets/kafka-simulator \
  --registry-url http://registry:8080/apis/ccompat/v7 --topic events
WORKERS ?= 1
export WORKERS

TEST_WORKERS ?= 2
# $(1): the JUnit file's name. A file's tests stay on one worker, since many share a service that the file has started;
# the files begin in the order that tests/conftest.py gives them.
pytest = .venv/bin/pytest --durations=15 --junitxml=build/junit/$(1).xml
spread := --numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup lint format lock test test-unit test-spark test-embedded test-long test-stack demo gold verify quality quality-stack bench bench-gateway bench-gold bench-upkeep bench-questions bench-stack clean distclean doctor images up up-minimal ps logs sql lineage notebooks smoke demo-stack quality-daily drill backup restore-backup down

##@ Start here

help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(environment) $(jars) ## Make .venv from requirements.lock and fetch the jars (a second run is instant)
	@:

demo: setup ## Simulate players, ingest, check: EVENTS=1000000 GAMES=30 RATE=<events per second, empty for as fast as it goes>
	@$(with_java) $(python) -m tools.demo --events $(EVENTS) --games $(GAMES) $(if $(RATE),--rate $(RATE))

lineage: $(environment) ## Draw where each table comes from, as one page (GAMELAKE_LAKEHOUSE=<URI>, the demo's by default)
	@$(python) -m tools.lineage

# The tables of make demo have nobody who keeps gold up; those of a stack have.
notebooks: setup $(if $(filter file://%,$(GAMELAKE_LAKEHOUSE)),gold) ## Run both notebooks and keep what they gave under build/notebooks: N=<analyst, engineer>
	@$(with_java) $(python) -m notebooks $(N)

gold: setup ## Bring the gold tables up to date, once (GAMELAKE_LAKEHOUSE=<URI>, the demo's by default)
	@$(with_java) GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_SPARK_JARS=build/jars/spark PYSPARK_PYTHON=$(python) \
	  $(python) -m jobs.gold --once >/dev/null

verify: setup ## Prove that every record is accounted for (GAMELAKE_LAKEHOUSE=<URI>, the demo's by default)
	@$(with_java) $(python) -m jobs.verify

# The tables of make demo are a day old tomorrow only: of those the newest day is taken.
day := $(or $(DAY),$(if $(filter file://%,$(GAMELAKE_LAKEHOUSE)),newest))
quality: setup ## Validate a day by Great Expectations: DAY=<YYYY-MM-DD, newest> G="<games, all>" DOCS=<folder, build/data-docs> HOLD=1: hold gold back
	@$(with_java) GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_RULES=quality/rules GAMELAKE_SPARK_JARS=build/jars/spark \
	  PYSPARK_PYTHON=$(python) $(python) -m jobs.validate $(G) $(if $(day),--day $(day)) $(if $(DOCS),--docs '$(DOCS)') \
	  $(if $(HOLD),--hold); found=$$?; $(python) -m tools.demo.redraw && exit $$found

bench: setup ## Measure the figures that the README states
	@$(with_java) $(python) -m benchmarks
	@$(with_java) $(python) -m benchmarks.gateway
	@$(with_java) $(python) -m benchmarks.gold
	@$(with_java) $(python) -m benchmarks.compaction
	@$(python) -m benchmarks.questions.packed
	@$(python) -m benchmarks.soak --pause 0.05

bench-gateway: setup ## Measure the gateway alone, beside FastAPI and aiokafka (some 5 minutes)
	@$(with_java) $(python) -m benchmarks.gateway

bench-gold: setup ## Measure gold alone, beside Spark's MERGE (some 5 minutes)
	@$(with_java) $(python) -m benchmarks.gold

bench-upkeep: setup ## Measure upkeep alone: packing beside OPTIMIZE, what questions gain, 10,000 batches (some 30 minutes)
	@$(with_java) $(python) -m benchmarks.compaction
	@$(python) -m benchmarks.questions.packed
	@$(python) -m benchmarks.soak --pause 0.05

##@ The stack (needs a Docker engine with compose)

bench-questions: setup ## Measure the worked questions in Trino on the running stack, over 50,000,000 events (some 15 minutes)
	@$(python) -m benchmarks.questions

bench-stack: setup ## Measure the running stack: what it sustains, how soon Trino returns an event
	@$(python) -m benchmarks.stack

doctor: ## Check the machine, and the lakehouse if there is one, and say the remedy of whatever is not well
	@compose/doctor.sh; machine=$$?; compose/checkup.sh && exit $$machine

images: ## Build the stack's images
	@compose/images.sh

up: ## Bring the whole stack up: WORKERS=<Spark workers, 1>
	@compose/up.sh

up-minimal: ## Bring the stack up without its observability
	@compose/up.sh --minimal

ps: ## List the stack's services and how they are
	@$(stack) ps --all --format 'table {{.Service}}\t{{.Status}}\t{{.Ports}}'

logs: ## Follow the logs: S=<service, empty for all>
	@$(stack) logs --follow --tail 100 $(S)

# As it was typed: SQL has dollars and quotes of its own.
sql: export QUERY := $(value Q)
ask := GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_SPARK_JARS=build/jars/spark $(python) -m jobs.ask
sql: $(if $(filter duckdb spark,$(ENGINE)),setup) ## Ask Trino: Q="<statement>" or F=<file>, neither for its command line; USER_NAME=<analyst, engineer>; ENGINE=<duckdb, spark>: the demo's tables
ifneq ($(filter duckdb spark,$(ENGINE)),)
	@$(with_java) $(ask) --engine $(ENGINE) $(if $(FORMAT),--format $(FORMAT)) $(if $(AS_OF),--as-of $(AS_OF)) \
	  $(if $(F),--file '$(F)',$(if $(Q),"$$QUERY"))
else
	@$(stack) exec $(if $(Q)$(F),--no-TTY) trino trino --user $(or $(USER_NAME),analyst) --catalog delta \
	  $(if $(F)$(Q),--output-format ALIGNED --execute="$(if $(F),$$(cat '$(F)'),$$QUERY)") \
	  || { [ -n "$$($(stack) ps --quiet --status running trino)" ] || \
	  echo "Trino does not run: make up starts it, and ENGINE=duckdb asks the tables of make demo without it." >&2; exit 1; }
endif

smoke: ## Send one event through the gateway and wait until Trino returns it
	@$(stack) run --rm --no-deps tools python -m tools.smoke

demo-stack: ## Simulate players in the stack: EVENTS=1000000 GAMES=30 RATE=<events per second, 5000> TARGET=<http, kafka>
	@$(stack) run --rm --no-deps tools python -m tools.simulator $(players_to_$(or $(TARGET),http)) \
	  --events $(EVENTS) --games $(GAMES) --rate $(or $(RATE),5000)

drill: setup ## Break the running stack on purpose, put it right, and time it: D=<lost-checkpoint, ...; all if empty>
	@$(python) -m tools.drill $(D)

quality-stack: ## Validate a day of the running stack by Great Expectations: DAY=, G=, HOLD=1 as for quality; Data Docs in build/data-docs
	@mkdir -p build/data-docs && chmod 0777 build/data-docs
	@$(stack) run --rm --no-deps --volume '$(CURDIR)/build/data-docs:/var/lib/data-docs' maintenance \
	  python -m jobs.validate $(G) $(if $(DAY),--day $(DAY)) --docs /var/lib/data-docs $(if $(HOLD),--hold)

quality-daily: ## Have the running stack validate each day that is over, hold gold back where that fails, and show Data Docs
	@$(stack) up --detach --wait --no-deps quality data-docs
	@compose/urls.sh | grep 'Data Docs'

down: ## Stop the stack; its data stays
	@$(stack) --profile '*' down --remove-orphans

##@ Check a change

lint: $(environment) ## Check style, types and who imports whom
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

format: $(environment) ## Rewrite the code in the house's format
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

test: setup ## Run all tests that need no Docker: TEST_WORKERS=<processes, 2> (with CI=true a missing service fails instead of being skipped)
	@$(with_java) $(for_seconds) $(call pytest,test) $(spread) tests/unit tests/spark tests/embedded

test-unit: $(environment) ## Run the tests that open no socket and start no JVM
	@$(call pytest,unit) $(spread) tests/unit

test-spark: $(environment) $(stamps)/spark-jars ## Run the tests that need Spark
	@$(with_java) $(for_seconds) $(call pytest,spark) $(spread) tests/spark

test-embedded: setup ## Run the tests that need Kafka and the schema registry
	@$(with_java) $(for_seconds) $(call pytest,embedded) $(spread) tests/embedded

# docs/faults.md has what each variable makes longer.
more := FAULT_SEEDS=$(or $(FAULT_SEEDS),100) FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),5000) SOAK_BATCHES=$(or $(SOAK_BATCHES),100) \
  OUTAGE_SECONDS=$(or $(OUTAGE_SECONDS),60) PROPERTY_FACTOR=$(or $(PROPERTY_FACTOR),20)
test-long: setup ## Run all tests that need no Docker, for hours: more kills, longer outages, and different random examples at each run
	@$(with_java) $(for_seconds) $(more) $(call pytest,long) $(spread) tests/unit tests/spark tests/embedded

test-stack: setup ## Bring the stack up, run the tests that need it, and take it down
	@$(with_java) tests/stack/run.sh

##@ Keep house

backup: setup ## Save what the tables don't hold, of the running stack or the demo: DEST=<folder, build/backups> KEEP=<so many, 8>
	@$(with_java) compose/backup.sh make $(if $(DEST),--to '$(DEST)') $(if $(KEEP),--keep $(KEEP))

restore-backup: setup ## Put a backup into an empty platform, after asking: B=<its folder> (YES=1: without, DRY_RUN=1: only check it)
	@$(with_java) compose/backup.sh restore '$(B)' $(if $(YES),--yes) $(if $(DRY_RUN),--dry-run) $(foreach part,$(INTO),--into $(part))

lock: $(environment) ## Bring the two lock files (a desk's, the images') in line with pyproject.toml
	@echo "Locking the dependencies"
	@$(compile) --all-extras --output-file requirements.lock
	@$(compile) --extra quality --extra services --constraint requirements.lock --no-annotate --output-file requirements-runtime.lock

clean: ## Remove tables, streams' state, logs and the stack's data, after asking (YES=1: without, DRY_RUN=1: only say what)
	@compose/clean.sh

distclean: ## Remove everything that make made
	@rm -rf build .venv gamelake.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# What the targets above are made of

# Nothing but the two files below may make an environment stale: editing the code must not reinstall it.
$(environment): requirements.lock pyproject.toml
	@echo "Making .venv from requirements.lock"
	@python="$$($(prerequisites) python)" && "$$python" -m venv --clear .venv
	@$(python) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(python) -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@mkdir -p $(@D) && touch $@

$(stamps)/spark-jars: $(shell find compose/spark -name pom.xml -o -name '*.java')
	@echo "Fetching the jars for Spark, building and testing ours"
	@rm -rf build/jars/spark
	@$(maven) compose/spark/pom.xml
	@mkdir -p $(@D) && touch $@

$(stamps)/kafka-jars: compose/kafka/pom.xml
	@echo "Fetching Kafka"
	@rm -rf build/jars/kafka
	@$(maven) $<
	@mkdir -p $(@D) && touch $@

$(stamps)/registry: compose/registry/pom.xml
	@echo "Fetching the schema registry"
	@rm -rf build/registry
	@$(maven) $<
	@mkdir -p $(@D) && touch $@
