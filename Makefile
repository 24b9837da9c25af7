# Each target builds its prerequisites once; stamp files under build/ record what was built from which input.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GAMES ?= 30
RATE ?=
# Whose tables the targets without Docker read: those of make demo, or of make dev.
ON ?= demo
# A misspelt choice is an error, and no other choice.
choices_of_ON := demo dev stack
choices_of_ENGINE := trino duckdb spark
choices_of_FORMAT := table csv json jsonl
flags := YES DRY_RUN HOLD FRESH COMPLETE
$(foreach flag,$(flags),$(eval choices_of_$(flag) := 1))
$(foreach name,ON ENGINE FORMAT $(flags),$(if $(filter-out $(choices_of_$(name)),$($(name))),\
  $(error $(name) is '$($(name))'; it must be $(if $(word 2,$(choices_of_$(name))),one of: )$(choices_of_$(name)))))
$(if $(and $(filter stack,$(ON)),$(filter duckdb spark,$(ENGINE))),\
  $(error ON=stack: only Trino has the stack's tables; leave ENGINE out))
export GAMELAKE_LAKEHOUSE ?= file://$(CURDIR)/build/$(ON)/lakehouse

python := .venv/bin/python
stamps := build/stamps
prerequisites := compose/prerequisites.sh
# A test's JVM lives for seconds: the C2 compiler would not pay off, and takes a third of the time.
for_seconds := export JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1 SPARK_SUBMIT_OPTS=-XX:+UseSerialGC &&
with_java := export JAVA_HOME && JAVA_HOME="$$($(prerequisites) java)" &&
# The machine's Maven, or the pinned one.
MAVEN ?= $(or $(shell command -v mvn 2>/dev/null),build/apache-maven/bin/mvn)
# Maven 3.8 on a new JDK warns about its own libraries at every start. An old JDK does not know the last option, hence the one before.
maven_options := -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions --sun-misc-unsafe-memory-access=allow
# By default Maven 3.9 reads poms one after the other.
maven_goal := $(with_java) MAVEN_OPTS="$(maven_options) $$MAVEN_OPTS" $(MAVEN) --quiet --batch-mode --threads 4 \
  -Daether.dependencyCollector.impl=bf -Dmaven.artifact.threads=10
maven := $(maven_goal) package --file
# $(1): what the rest of a recipe's line does, which prints nothing for minutes.
progress = exec 9> >(compose/progress.sh '$(1)' .venv build/jars "$${UV_CACHE_DIR:-$$HOME/.cache/uv}" "$$HOME/.m2/repository") &&
# The tests of our jar are `make test-java`: `make setup` does not wait for them.
fetch_jars = rm -rf build/jars/spark build/jars/kafka build/jars/model build/registry && $(maven) compose/pom.xml -Dmaven.test.skip=true
compile := .venv/bin/uv pip compile pyproject.toml --quiet --no-config --universal --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
# $(1): a dependency group, which has an environment of its own.
compile_group = $(subst pyproject.toml,--group pyproject.toml:$(1),$(compile)) --no-annotate --output-file requirements-$(1).lock
# uv does not read pip's settings, in which a machine may have a mirror.
install := UV_SYSTEM_CERTS=true UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$$($(python) -m pip config get global.index-url 2>/dev/null)}" \
  .venv/bin/uv pip install --quiet --python $(python)
environment := $(stamps)/environment
# Reads Kafka in Rust, where Rust is installed.
native := $(stamps)/native
# The conformance test asks engines that users bring; it is skipped without them, except in CI.
engines := $(stamps)/engines
# The docs site's tools, and the script that draws its diagrams.
docs_environment := build/docs/environment/complete
mermaid := build/docs/mermaid/mermaid.min.js
mkdocs := PYTHONPATH='$(CURDIR)' NO_MKDOCS_2_WARNING=1 build/docs/environment/bin/mkdocs
# By which a test of the stack connects to Trino.
jdbc := build/jdbc/trino-jdbc.jar
engines_in_ci = $(if $(and $(filter true,$(CI)),$(filter 1,$(SLOW_TESTS))),$(engines))
# Opens the portal in Chromium, where that is installed.
browser := $(stamps)/browser
browser_in_ci := $(if $(filter true,$(CI)),$(browser))
# Spark's JVMs map classes that are parsed and verified already, if this Java has archived them.
class_archive := build/jars/spark.jsa
jars := $(stamps)/jars
java_tests := $(stamps)/java-tests
programs := $(environment) $(native) $(jars)
# Silent about what is up to date.
at_once = $(MAKE) --silent $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=4)
# A JDK of the machine, or else a Java runtime from a Python package.
java := $(stamps)/java
packaged_java := build/java/release
packaged_java_in_ci = $(if $(and $(filter true,$(CI)),$(filter 1,$(SLOW_TESTS))),$(packaged_java))
needs_maven := $(java) $(filter build/%,$(MAVEN))

# The machine's Helm, or that of the environment, where there is a wheel of it, or one that is built.
packaged_helm := $(if $(filter Linux/x86_64,$(subst $() ,/,$(shell uname -sm))),.venv/bin/helm)
HELM ?= $(or $(shell command -v helm 2>/dev/null),$(packaged_helm),build/helm/helm)
helm_of := helm.sh/helm/v3

stack := compose/stack.sh
players_to_http := --target http
players_to_kafka := --target kafka --topic events
WORKERS ?= 1
export WORKERS

TEST_WORKERS ?= 2
# 1: also the tests that are marked slow.
SLOW_TESTS ?= 0
export SLOW_TESTS
# $(1): the JUnit file's name. A file's tests stay on one worker, since many share a service that the file has started;
# the files begin in the order that tests/conftest.py gives them.
pytest = .venv/bin/pytest --durations=15 --junitxml=build/junit/$(1).xml
spread := --numprocesses $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: help setup java lint format lock dbt pictures model test test-unit test-java test-spark test-embedded test-long test-stack test-oidc test-bi demo dev dev-clean browser portal gold verify quality quality-stack bench bench-gateway bench-gold bench-maintenance bench-questions bench-stack bench-year clean distclean doctor images up up-minimal ps logs sql lineage notebooks smoke demo-stack quality-daily drill backup restore-backup rotate down engines sbom licences vulnerabilities vulnerability-database wheel release push-images chart chart-check test-kubernetes docs docs-serve

# What a newcomer needs leads the help, in this order.
first := demo dev doctor up sql test

##@ Without Docker

help: ## Print this list
	@awk -v first='$(first)' 'BEGIN { FS = ":.*## "; count = split(first, order, " "); for (i in order) leads[order[i]] } \
	  /^##@ / { rest = rest "\n" substr($$0, 5) "\n" } \
	  /^[a-z-]+:.*## / { line = sprintf("  %-22s %s\n", $$1, $$2); if ($$1 in leads) lead[$$1] = line; else rest = rest line } \
	  END { print "\nStart here"; for (i = 1; i <= count; i++) printf "%s", lead[order[i]]; printf "%s", rest }' $(MAKEFILE_LIST)

setup: ## Make .venv from requirements.lock and fetch the jars (a second run is instant)
# Not to the standard output, which is that of what is made: `make sql FORMAT=json`.
	@$(at_once) $(programs) $(class_archive) >&2

java: $(packaged_java) ## Install a Java runtime from a Python package in build/java, as make setup does where there is no JDK
	@:

# Classes are archived after the first demo, whose few JVMs the archive would gain less time than it takes.
demo: ## Simulate players, ingest their events, check the tables: EVENTS=250000 GAMES=30 RATE=<events per second; empty: no limit>
	@$(at_once) $(programs)
	@$(with_java) $(python) -m tools.demo --events $(or $(EVENTS),250000) --games '$(GAMES)' $(if $(RATE),--rate '$(RATE)')
	@$(at_once) $(class_archive)

dev: setup ## Run the platform without Docker until Ctrl-C, with data that stays: RATE=<events per second of simulated players, none> GAMES=30 FIRST_PORT=<the first of its ports, 17000>
	@$(with_java) $(python) -m tools.dev $(if $(RATE),--rate '$(RATE)' --games '$(GAMES)') \
	  $(if $(FIRST_PORT),--first-port '$(FIRST_PORT)')

dev-clean: $(environment) ## Remove the data of make dev, after asking (YES=1: don't ask, DRY_RUN=1: only show them)
	@$(python) -m tools.dev.clean $(if $(YES),--yes) $(if $(DRY_RUN),--dry-run)

lineage: $(environment) ## Draw the lineage of all tables as one HTML page (GAMELAKE_LAKEHOUSE=<URI>, default: the demo's; ON=dev: make dev's; ON=stack: the stack's)
	@$(python) -m tools.lineage $(if $(filter stack,$(ON)),--stack)

# No process refreshes the gold tables of make demo; in the stack the service `serving` does.
notebooks: setup $(if $(filter file://%,$(GAMELAKE_LAKEHOUSE)),gold) ## Run the notebooks and keep their output under build/notebooks: N=<analyst, engineer, streaming>
	@$(with_java) $(python) -m notebooks $(N)

gold: setup ## Refresh the gold tables once (GAMELAKE_LAKEHOUSE=<URI>, default: the demo's; ON=dev: make dev's)
	@$(with_java) GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_SPARK_JARS=build/jars/spark PYSPARK_PYTHON=$(python) \
	  $(python) -m jobs.gold --once >/dev/null

verify: setup ## Reconcile records in with rows, duplicates and dead letters (GAMELAKE_LAKEHOUSE=<URI>, default: the demo's; ON=dev: make dev's)
	@$(with_java) $(python) -m jobs.verify

# The default day is yesterday, which the tables of make demo don't have yet: there, the newest day is validated.
day := $(or $(DAY),$(if $(filter file://%,$(GAMELAKE_LAKEHOUSE)),newest))
quality: setup ## Validate a day with Great Expectations: DAY=<YYYY-MM-DD, newest> G="<games, all>" DOCS=<folder, build/data-docs> HOLD=1: hold gold where it fails
	@$(with_java) GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_RULES=quality/rules GAMELAKE_SPARK_JARS=build/jars/spark \
	  PYSPARK_PYTHON=$(python) $(python) -m jobs.validate $(G) $(if $(day),--day $(day)) $(if $(DOCS),--docs '$(DOCS)') \
	  $(if $(HOLD),--hold); found=$$?; $(python) -m tools.demo.redraw && exit $$found

bench: setup ## Run the benchmarks whose figures the README states
	@$(with_java) $(python) -m benchmarks
	@$(with_java) $(python) -m benchmarks.gateway
	@$(with_java) $(python) -m benchmarks.kafka_sync
	@$(with_java) $(python) -m benchmarks.gold
	@$(with_java) $(python) -m benchmarks.compaction
	@$(python) -m benchmarks.questions.compaction
	@$(python) -m benchmarks.soak --pause 0.05

bench-gateway: setup ## Benchmark the gateway against FastAPI and aiokafka (about 5 minutes)
	@$(with_java) $(python) -m benchmarks.gateway

bench-gold: setup ## Benchmark the gold tables against Spark's MERGE (about 5 minutes)
	@$(with_java) $(python) -m benchmarks.gold

bench-maintenance: setup ## Benchmark maintenance: compaction against OPTIMIZE, its effect on queries, 10,000 batches (about 30 minutes)
	@$(with_java) $(python) -m benchmarks.compaction
	@$(python) -m benchmarks.questions.compaction
	@$(python) -m benchmarks.soak --pause 0.05

bench-year: $(environment) ## Let a lakehouse live a year, and measure what grows with it: BATCHES=<18200> OUT=<folder for the results> (two hours)
	@$(python) -m benchmarks.year $(if $(BATCHES),--batches $(BATCHES)) $(if $(OUT),--out '$(OUT)')

##@ The stack (needs a Docker engine with compose)

bench-questions: setup ## Benchmark the queries of sql/questions in Trino on the running stack, over 50,000,000 events (about 15 minutes)
	@$(python) -m benchmarks.questions

bench-stack: setup ## Benchmark the running stack: sustained rate, and time from event to Trino
	@$(python) -m benchmarks.stack

doctor: ## Check the machine, and the lakehouse if there is one, and print a remedy for each problem
	@compose/doctor.sh; machine=$$?; compose/checkup.sh && exit $$machine

images: ## Build the stack's images: FRESH=1: without the cache, with the latest corrections of Debian's packages
	@compose/images.sh

up: ## Start the whole stack: WORKERS=<Spark workers, 1> PREBUILT=<host/owner: pull the release's images instead of building them> BI=1: with dashboards of Superset
	@compose/up.sh

up-minimal: ## Start the stack without serving, maintenance and observability
	@compose/up.sh --minimal

ps: ## List the stack's services and their status
	@$(stack) ps --all --format 'table {{.Service}}\t{{.Status}}\t{{.Ports}}'

logs: ## Follow the logs: S=<service, empty for all>
	@$(stack) logs --follow --tail 100 $(S)

dbt: $(engines) ## Build the models of sql/dbt with DuckDB in build/dbt (GAMELAKE_LAKEHOUSE=<URI>, default: the demo's; ON=dev: make dev's)
	@mkdir -p build/dbt && DBT_TARGET_PATH=build/dbt/target DBT_LOG_PATH=build/dbt/logs \
	  build/engines/bin/dbt build --project-dir sql/dbt --profiles-dir sql/dbt

pictures: $(environment) $(browser) ## Make docs/pictures again: W=<demo, pages (make dev must run), faults (make up, gamelake switchboard); all if empty>
	@$(python) -m tools.pictures $(W)

# The value is passed on unexpanded: SQL has its own dollars and quotes.
sql: export QUERY := $(value Q)
ask := GAMELAKE_GAMES_FILE=contracts/games.yaml GAMELAKE_SPARK_JARS=build/jars/spark $(python) -m jobs.ask
# Of Trino's command line, which has no JSON document of all rows.
trino_format_ := ALIGNED
trino_format_table := ALIGNED
trino_format_csv := CSV_HEADER
trino_format_jsonl := JSON
trino_format = $(or $(trino_format_$(FORMAT)),$(error Trino prints FORMAT=jsonl, a row on each line; FORMAT=json needs ENGINE=duckdb or spark))
sql: $(if $(filter duckdb spark,$(ENGINE)),setup) ## Query Trino: Q="<statement>" or F=<file>, neither: its command line; FORMAT=<table, csv, json, jsonl> USER_NAME=<analyst, engineer, ...>; ENGINE=<duckdb, spark>: the demo's tables, with ON=dev those of make dev
ifneq ($(filter duckdb spark,$(ENGINE)),)
	@$(with_java) $(ask) --engine $(ENGINE) $(if $(FORMAT),--format $(FORMAT)) $(if $(AS_OF),--as-of '$(AS_OF)') \
	  $(if $(F),--file '$(F)',$(if $(Q),"$$QUERY"))
else
	@compose/sql.sh '$(or $(USER_NAME),analyst)' \
	  $(if $(F)$(Q),--output-format $(trino_format) --execute="$(if $(F),$$(cat '$(F)'),$$QUERY)" </dev/null)
endif

smoke: ## Send one event through the gateway and wait until Trino returns it
	@$(stack) run --rm --no-deps tools python -m tools.smoke

demo-stack: ## Simulate players in the stack: EVENTS=1000000 GAMES=30 RATE=<events per second, 5000> TARGET=<http, kafka>
	@$(stack) run --rm --no-deps tools python -m tools.simulator $(players_to_$(or $(TARGET),http)) \
	  --events $(or $(EVENTS),1000000) --games $(GAMES) --rate $(or $(RATE),5000)

drill: setup ## Run recovery drills on the running stack, after asking: inject a fault, repair it, time it: D=<lost-checkpoint, ...; all if empty> (YES=1: don't ask, DRY_RUN=1: only list them)
	@$(python) -m tools.drill $(if $(YES),--yes) $(if $(DRY_RUN),--dry-run) $(D)

quality-stack: ## Validate a day of the running stack with Great Expectations: DAY=, G=, HOLD=1 as for quality; Data Docs in build/data-docs
	@mkdir -p build/data-docs && chmod 0777 build/data-docs
	@$(stack) run --rm --no-deps --volume '$(CURDIR)/build/data-docs:/var/lib/data-docs' maintenance \
	  python -m jobs.validate $(G) $(if $(DAY),--day $(DAY)) --docs /var/lib/data-docs $(if $(HOLD),--hold)

quality-daily: ## Let the running stack validate each day after it ends, hold gold where that fails, and serve Data Docs
	@$(stack) up --detach --wait --no-deps quality data-docs
	@compose/urls.sh | grep 'Data Docs'

portal: docs ## Give the portal of the running stack the docs site, and the lineage of the tables as it is now
	@$(python) -m tools.lineage --stack --output build/portal/lineage.html >/dev/null || echo "The lineage could not be drawn: run make portal again once there are tables."
	@compose/urls.sh | grep 'Portal'

down: ## Stop the stack; its data stays
	@$(stack) --profile '*' down --remove-orphans

##@ Check a change

# Next to mypy, which uses one core.
lint_native = { ! command -v cargo-clippy >/dev/null || (cd native && cargo fmt --check && CARGO_TARGET_DIR=../build/native cargo clippy --quiet --locked -- --deny warnings); }
lint: $(environment) ## Check style, types, import contracts, and what contracts, rules, views and questions declare
	@$(lint_native) & \
	  .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/lint-imports && \
	  $(python) -m tools.contracts; \
	  code=$$?; wait $$! && exit $$code

format: $(environment) ## Format the code
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .
	@! command -v cargo-fmt >/dev/null || (cd native && cargo fmt)

test: setup $(java_tests) $(engines_in_ci) $(browser_in_ci) $(packaged_java_in_ci) ## Run all tests that need no Docker: TEST_WORKERS=<processes, 2> (with CI=true a missing service fails instead of being skipped)
	@$(with_java) $(for_seconds) $(call pytest,test) $(spread) tests/unit tests/spark tests/embedded

test-unit: $(environment) ## Run the tests that open no socket and start no JVM
	@$(call pytest,unit) $(spread) tests/unit

test-spark: $(class_archive) $(java_tests) $(engines_in_ci) ## Run the tests that need Spark
	@$(with_java) $(for_seconds) $(call pytest,spark) $(spread) tests/spark

test-java: $(java_tests) ## Run the tests of our jar for Spark, if this Java can compile them
	@:

test-embedded: setup $(browser_in_ci) $(packaged_java_in_ci) ## Run the tests that need Kafka and the schema registry
	@$(with_java) $(for_seconds) $(call pytest,embedded) $(spread) tests/embedded

engines: $(engines) ## Install the engines that users bring (Daft, ClickHouse, Sail, dbt, ...) for the conformance test (1.6 GB)
	@:

browser: $(browser) ## Install what opens the portal in Chromium for its test (200 MB, without Chromium)
	@:

model: $(environment) $(jars) ## Check the model of the protocol by TLC, with all bounds (about 5 minutes): B="<bounds of docs/model, empty: all>"
	@$(with_java) $(python) -m tools.model $(B)

# docs/appendix/faults.md has what each variable makes longer.
more := FAULT_SEEDS=$(or $(FAULT_SEEDS),100) FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),5000) \
  FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) SOAK_BATCHES=$(or $(SOAK_BATCHES),100) \
  OUTAGE_SECONDS=$(or $(OUTAGE_SECONDS),60) PROPERTY_FACTOR=$(or $(PROPERTY_FACTOR),20) SCHEDULES_FACTOR=$(or $(SCHEDULES_FACTOR),230) \
  POISON_FACTOR=$(or $(POISON_FACTOR),334) HISTORIES_FACTOR=$(or $(HISTORIES_FACTOR),100)
test-long: setup ## Run all tests that need no Docker, for hours: more kills, longer outages, and different random examples at each run
	@$(with_java) $(for_seconds) $(more) $(call pytest,long) --timeout=0 $(spread) tests/unit tests/spark tests/embedded

test-stack: setup $(jdbc) $(browser_in_ci) $(engines_in_ci) ## Bring the stack up, run the tests that need it, and take it down: K="<pytest's expression of the tests to run, all>"
	@$(with_java) $(for_seconds) tests/stack/run.sh $(if $(K),-k '$(K)')

chart-check: $(environment) $(filter build/helm/%,$(HELM)) ## Render, lint and validate the Helm chart with Helm (HELM=<its path>; where there is no wheel of it, it is built from source)
	@HELM='$(HELM)' $(call pytest,chart) tests/unit/chart

test-oidc: $(environment) ## Bring up Trino with logins at Keycloak, run the tests of logins, and take both down
	@tests/stack/oidc.sh

test-bi: $(environment) $(browser_in_ci) ## Bring up the stack with Superset, open its dashboards in Chromium, and take it down
	@tests/stack/bi.sh

##@ Documents

docs: $(docs_environment) $(mermaid) ## Build the docs site in build/docs/site; a broken link fails it
	@$(mkdocs) build && echo "build/docs/site/index.html is the docs site; make docs-serve serves it"

docs-serve: $(docs_environment) $(mermaid) ## Serve the docs site on this machine, built again when a document changes: PORT=<8000>
	@$(mkdocs) serve --dev-addr 127.0.0.1:$(or $(PORT),8000)

##@ Kubernetes (docs/cluster.md)

chart: ## Assemble the Helm chart in build/chart/gamelake, with the files that it shares with the stack
	@deploy/chart.sh

test-kubernetes: $(environment) $(filter build/helm/%,$(HELM)) ## Bring up a Kubernetes cluster with the chart (kind, k3d, or as root processes of it: CLUSTER=), run its tests, and take it down
	@HELM='$(abspath $(HELM))' tests/kubernetes/run.sh

##@ Supply chain

sbom: $(environment) $(jars) ## List what locks, jars, crates and images are made of, as CycloneDX in build/sbom: B="<SBOMs, all>" COMPLETE=1: fail without the images
	@$(python) -m tools.supply_chain sbom $(B) $(if $(COMPLETE),--complete)

licences: $(environment) ## Check the licences in build/sbom against tools/supply_chain/licences.yaml
	@$(python) -m tools.supply_chain licences

DB ?= build/osv
vulnerabilities: $(environment) ## Look build/sbom up in a downloaded database of known vulnerabilities: DB=<folder, build/osv>
	@$(python) -m tools.supply_chain vulnerabilities --database '$(DB)'

osv := https://osv-vulnerabilities.storage.googleapis.com
vulnerability-database: ## Download OSV's database for the ecosystems of the SBOMs: DB=<folder, build/osv>
	@for ecosystem in PyPI Maven Debian crates.io Go; do echo "Downloading $$ecosystem" && mkdir -p "$(DB)/$$ecosystem" \
	  && curl --fail --silent --show-error --location --output "$(DB)/$$ecosystem/all.zip.part" "$(osv)/$$ecosystem/all.zip" \
	  && mv "$(DB)/$$ecosystem/all.zip.part" "$(DB)/$$ecosystem/all.zip" || exit 1; done

wheel: $(environment) ## Build the library's wheel in build/dist
	@.venv/bin/uv build --quiet --wheel --no-build-isolation --python $(python) --out-dir build/dist

version = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
release_parts := setup wheel java engines browser $(docs_environment) images
make_release = $(MAKE) $(release_parts) && compose/images.sh superset && $(MAKE) sbom COMPLETE=1 && $(MAKE) licences \
  && $(if $(wildcard $(DB)),$(MAKE) vulnerabilities,echo "Vulnerabilities are not looked up: make vulnerability-database downloads them") \
  $(if $(REGISTRY),&& $(MAKE) push-images TAG='$(or $(TAG),v$(version))') && $(python) -m tools.release collect
release: $(environment) ## Build a release of the committed version in build/release: wheel, our jar, images, SBOMs, notes, checksums: REGISTRY=<host/owner>: push the images, too, TAG=<v and the version>; DRY_RUN=1: only check
	@$(python) -m tools.release check
	@$(if $(DRY_RUN),echo "It would be built in build/release/$(version): $(release_parts) sbom licences",$(make_release))

push-images: ## Push the stack's images to a container registry and list their digests in build/dist: REGISTRY=<host/owner> TAG=<tag> JOIN="<architectures that were pushed as TAG-architecture: join them under TAG>"
	@compose/prebuilt.sh push '$(REGISTRY)' '$(TAG)' $(JOIN)

##@ Maintain

# ON has a default, for other targets; here only a demo that is asked for counts.
backup_of := compose/backup.sh $(if $(filter file,$(origin ON)),,$(filter-out --stack,--$(ON)))
backup: setup ## Back up what is not in the tables, of the running stack: DEST=<folder, build/backups> KEEP=<how many, 8>; ON=demo: of the demo
	@$(with_java) $(backup_of) make $(if $(DEST),--to '$(DEST)') $(if $(KEEP),--keep $(KEEP))

restore-backup: setup ## Restore a backup into an empty platform, after asking: B=<its folder> (YES=1: don't ask, DRY_RUN=1: only check it); ON=demo: into the demo's
	@$(with_java) $(backup_of) restore '$(B)' $(if $(YES),--yes) $(if $(DRY_RUN),--dry-run) $(foreach part,$(INTO),--into $(part))

rotate: ## Replace a secret of the running stack, all certificates, or all of both: S=<its name, certificates, or all> (DRY_RUN=1: only list the steps)
	@compose/rotate.sh $(if $(DRY_RUN),--dry-run) '$(S)'

lock: $(environment) | $(needs_maven) ## Update the lock files (development, images, engines, browser, docs site, Java, Superset) from pyproject.toml, and the hashes of the jars
	@echo "Locking the dependencies"
	@$(compile) --all-extras --output-file requirements.lock
	@$(compile) --extra quality --extra services --extra traces --constraint requirements.lock --no-annotate --output-file requirements-runtime.lock
	@$(call compile_group,engines)
	@$(call compile_group,browser)
	@$(call compile_group,docs)
	@$(call compile_group,java)
# Its image has Debian's Python.
	@$(call compile_group,superset) --python-version 3.13 --override compose/superset/overrides.txt
	@echo "Hashing the jars"
	@$(call progress,Fetching jars) $(fetch_jars)
	@$(python) -m tools.supply_chain.jar_hashes write

clean: ## Remove tables, stream state, logs and the stack's data, after asking (YES=1: don't ask, DRY_RUN=1: only list them)
	@compose/clean.sh

distclean: ## Remove everything that make made but the stack's data, after asking (YES=1: don't ask, DRY_RUN=1: only list it)
	@compose/clean.sh --all-made

# Prerequisites of the targets above

# The environment depends on these two files only: editing the code must not reinstall it.
$(environment): requirements.lock pyproject.toml
	@echo "Making .venv from requirements.lock, in about two minutes if nothing is cached"
	@python="$$($(prerequisites) python)" && "$$python" -m venv --clear .venv
	@mkdir -p $(@D)
# pip installs uv, which installs the rest in a third of pip's time.
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock >$@.uv
	@$(python) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $@.uv
	@$(call progress,Installing packages) $(install) --require-hashes --requirement requirements.lock
	@$(call progress,Installing the library) $(install) --no-deps --editable .
	@mv $@.uv $@

$(native): $(environment) native/build.sh native/Cargo.toml native/Cargo.lock $(wildcard native/src/*.rs)
	@echo "Building gamelake_native"
	@native/build.sh $(python)
	@mkdir -p $(@D) && touch $@

$(engines): requirements-engines.lock $(environment)
	@echo "Making build/engines from requirements-engines.lock"
	@python="$$($(prerequisites) python)" && "$$python" -m venv --clear build/engines
	@$(subst --python $(python),--python build/engines/bin/python,$(install)) --require-hashes --requirement $<
	@touch $@

$(browser): requirements-browser.lock $(environment)
	@echo "Making build/browser from requirements-browser.lock"
	@python="$$($(prerequisites) python)" && "$$python" -m venv --clear build/browser
	@$(subst --python $(python),--python build/browser/bin/python,$(install)) --require-hashes --requirement $<
	@touch $@

$(docs_environment): requirements-docs.lock $(environment)
	@echo "Making build/docs/environment from requirements-docs.lock"
	@python="$$($(prerequisites) python)" && "$$python" -m venv --clear build/docs/environment
	@$(subst --python $(python),--python build/docs/environment/bin/python,$(install)) --require-hashes --requirement $<
	@touch $@

$(packaged_java): requirements-java.lock tools/embedded/packaged_java.py $(environment)
	@echo "Making build/java from requirements-java.lock"
	@rm -rf build/java
	@$(call progress,Installing Java) $(install) --require-hashes --requirement $< --target build/java/packages
	@$(python) -m tools.embedded.packaged_java build/java

$(java): requirements-java.lock $(environment)
	@case "$$($(prerequisites) java 2>/dev/null)" in "" | */build/java) $(MAKE) java ;; esac
	@mkdir -p $(@D) && touch $@

build/apache-maven/bin/mvn: compose/maven/ivy.xml compose/maven/fetch.sh | $(java)
	@echo "Fetching Maven"
	@$(with_java) compose/maven/fetch.sh $(python) build/apache-maven
	@touch $@

$(mermaid): compose/docs/pom.xml | $(needs_maven)
	@echo "Fetching Mermaid"
	@$(maven) $<
	@touch $@

$(jdbc): compose/jdbc/pom.xml | $(needs_maven)
	@echo "Fetching Trino's JDBC driver"
	@$(maven) $<
	@touch $@

build/helm/helm: deploy/helm/tools/go.mod deploy/helm/tools/go.sum
	@command -v go >/dev/null || { echo "gamelake: Helm and Go are missing: install one of them (https://helm.sh, https://go.dev)."; exit 1; }
	@echo "Building Helm"
	@mkdir -p $(@D) && cd deploy/helm/tools && go build -trimpath -ldflags "-s -w -X $(helm_of)/internal/version.version=v3.19.5 \
	  -X $(helm_of)/pkg/chartutil.k8sVersionMajor=1 -X $(helm_of)/pkg/chartutil.k8sVersionMinor=34" \
	  -o ../../../$@ $(helm_of)/cmd/helm

$(jars): compose/pom.xml compose/jars.sha256 $(wildcard compose/kafka/pom.xml compose/model/pom.xml compose/registry/pom.xml) \
  $(shell find compose/spark -name pom.xml -o -name '*.java') | $(needs_maven)
	@echo "Fetching the jars of Spark, Kafka, the schema registry and TLC, building ours"
	@$(call progress,Fetching jars) $(fetch_jars)
	@$(python) -m tools.supply_chain.jar_hashes check
	@mkdir -p $(@D) && touch $@

$(java_tests): $(jars)
	@echo "Testing our jar"
	@$(maven_goal) test --file compose/spark/logstore/pom.xml
	@mkdir -p $(@D) && touch $@

$(class_archive): $(environment) $(jars)
	@echo "Archiving the classes that Spark loads, once: later starts take less time"
	@$(call progress,Archiving classes) $(with_java) $(for_seconds) GAMELAKE_SPARK_JARS=$(@:.jsa=) PYSPARK_PYTHON=$(python) $(python) -m jobs.archive_classes >$@.log 2>&1 || { cat $@.log; exit 1; }
