# Moorage. `make` alone lists the targets. Needs Python >= 3.11, make and git; everything else
# comes into .venv from the hashed locks in requirements/, as wheels.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
STAMP  := $(VENV)/.installed
IDENTITY := .cache/keystone/.locked
MINICLOUD := .cache/minicloud/.locked
FROM_SOURCE := --no-binary ovs --no-binary wsme --no-binary simplegeneric
NOVAS_TESTS := .cache/nova-functional/.locked
BLAZAR := .cache/blazar/.locked
DROP_IN := .cache/drop-in/.locked
SERVERS := .cache/http-servers/.locked
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all:

# The locks name versions and hashes and no index: pip's and uv's own configuration says where from.
# A site that has told only pip about its mirror is served too.
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
ifeq ($(strip $(UV_DEFAULT_INDEX)),)
unexport UV_DEFAULT_INDEX
endif
ifneq ($(strip $(PIP_CERT)),)
export SSL_CERT_FILE ?= $(PIP_CERT)
endif

# Compiled modules are kept, whatever the shell says (images for containers often say otherwise): the
# tests and the pages start hundreds of processes, and each would spend most of its start compiling.
unexport PYTHONDONTWRITEBYTECODE

COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --only-binary :all: \
           --no-header --no-annotate --no-emit-index-url --quiet --constraint requirements/chosen.in

.DEFAULT_GOAL := help

.PHONY: help install chromium mariadb compiled style keystone minicloud minicloud-test minicloud-stop nova-functional drop-in-test demo demo-leases serve test lint bench-placement bench-time bench-month bench-http bench-joint bench-public bench-survivability bench-fairness bench-web format types imports unit soak crash schedules mutants ways fuzz-placement fuzz-doors heat-judge heat-survey nightly docs docs-serve lock lock-web pictures changelog wheel clean

help:  ## this list
	@echo "Moorage: first 'make demo' to see it work, 'make test' for everything CI does."
	@echo
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## make .venv from the lock, with every extra and the tools

# Two stamps: touching pyproject.toml renews the editable install, and only a new lock the packages.
$(LOCKED): requirements/all.txt requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Moorage needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --only-binary :all: --require-hashes requirements/all.txt || \
	  $(PIP) --require-hashes -r requirements/all.txt
	@touch $@

$(STAMP): $(LOCKED) pyproject.toml
	$(PIP) --no-index --no-deps --no-build-isolation --editable .
	@touch $@

keystone: $(IDENTITY)  ## make .cache/keystone, the identity service for the tests of its use

# An environment of its own: it wants other versions than we do, and nothing of ours.
$(IDENTITY): requirements/keystone.txt $(LOCKED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python --only-binary :all: --require-hashes $< || \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $<
	@touch $@

# The services of a small cloud, all of one release of OpenStack. A few of the libraries that they
# import are published as source alone.
$(MINICLOUD): requirements/minicloud.txt $(LOCKED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python --only-binary :all: $(FROM_SOURCE) --require-hashes $< || \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: $(FROM_SOURCE) --no-deps --require-hashes -r $<
	@touch $@

# Nova's functional tests, and both sides of them: openstack-placement and Moorage.
$(NOVAS_TESTS): requirements/nova-functional.txt $(LOCKED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python --only-binary :all: $(FROM_SOURCE) --require-hashes $< || \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: $(FROM_SOURCE) --no-deps --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-index --no-deps --no-build-isolation --editable .
	for folder in $(@D)/lib/python3*/site-packages; do ln -sfn ../../../etc $$folder/etc; done
	@touch $@

# Blazar's own manager, for `make bench-time`; nothing else uses it.
$(BLAZAR): requirements/blazar-bench.txt $(LOCKED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python --only-binary :all: --require-hashes $< || \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --require-hashes -r $<
	@touch $@

# packaging/drop-in as it is installed: it has the module name of the reference, which is not here.
$(DROP_IN): requirements/drop-in.txt packaging/drop-in/pyproject.toml $(LOCKED)
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python --only-binary :all: --require-hashes $< || \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python $(@D)/bin/python --no-index --no-deps --no-build-isolation --editable . --editable packaging/drop-in
	@touch $@

# Servers that are judged beside ours, in a folder for `PYTHONPATH`.
$(SERVERS): requirements/http-servers.txt $(LOCKED)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(@D) --only-binary :all: --require-hashes -r $< || \
	  $(PIP) --target $(@D) --require-hashes -r $<
	@touch $@

demo: install  ## the main job, really run: place an application jointly, hold, claim, confirm
	$(BIN)/moorage demo

demo-leases: install  ## leases, really run: an operator's month on an edge site
	$(BIN)/moorage demo --leases

minicloud: install $(MINICLOUD)  ## a cloud of real services with Moorage as its Placement, on loopback, in the background
	.ci/rabbitmq
	$(BIN)/python -m tests.minicloud start

minicloud-test: install $(MINICLOUD)  ## the scenarios on that cloud, or on one of their own: three quarters of an hour (ARGS=tests/minicloud/test_hints.py)
	.ci/rabbitmq
	MOORAGE_MINICLOUD=1 $(BIN)/python -m pytest -v --durations=10 $(ARGS) $(if $(findstring tests/,$(ARGS)),,tests/minicloud)

nova-functional: install $(NOVAS_TESTS)  ## Nova's own functional tests with Moorage and with the reference (ARGS="--only test_report_client")
	$(BIN)/python -m tests.nova_functional $(ARGS)

drop-in-test: install $(DROP_IN)  ## packaging/drop-in with kolla-ansible's templates, on MariaDB and PostgreSQL
	$(BIN)/python -m pytest --nightly -v tests/drop_in $(ARGS)

minicloud-stop: install  ## end that cloud, and remove what it wrote
	$(BIN)/python -m tests.minicloud stop

serve: install  ## start a server on an embedded database, for use
	$(BIN)/moorage serve

# mypy runs beside everything else: it keeps one core busy for a minute, and the others wait for
# the network first and for processes later. What it says comes last. A clean checkout compiles the
# tests' modules once, before six workers would each do so.
test: install  ## everything: lint, types, layers, tests, documentation
	@mkdir -p .cache; \
	$(MAKE) --no-print-directory types >.cache/types.log 2>&1 & types=$$!; \
	trap "kill $$types" INT TERM; \
	$(MAKE) --no-print-directory --jobs=4 --output-sync=target $(if $(CI),mariadb chromium) keystone style imports docs $(if $(CI),compiled) \
	  && $(MAKE) --no-print-directory unit; tests=$$?; \
	wait $$types; types=$$?; cat .cache/types.log; exit $$((tests | types))

lint: install types imports style  ## ruff, mypy, import contracts, dependencies

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/deptry .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports --no-cache

mariadb:
	.ci/mariadb

# Debian's browser and axe-core, for the tests of the web page; apt runs once at a time.
chromium: $(if $(CI),mariadb)
	.ci/chromium
	.ci/axe

compiled: install
	$(BIN)/python -m pytest --collect-only --quiet --quiet >.cache/collected

# The tests wait for processes as often as they compute, so six workers keep two cores busy.
# tests/distribution.py says what stays together and what comes first; xdist's own order knows no time.
# A worker that dies is not replaced: xdist would wait for ever for what the file had left.
# The longest tests are listed at the end, so that nobody has to look for them.
# A test that fails is run once more, five in a run at most: thousands of tests that start processes
# and wait for them do not all pass on a busy machine. What failed first is shown with its traceback
# under "rerun test summary info", and is a defect of the test or of the code, to be mended.
unit: install keystone  ## only pytest (ARGS="-k word" chooses, WORKERS=0 runs them in one process)
	TMPDIR=$$(.ci/scratch) $(BIN)/python -m pytest --numprocesses=$(or $(WORKERS),6) --dist=loadfile --no-loadscope-reorder \
	  --max-worker-restart=0 --reruns=1 --max-suite-reruns=5 --rerun-show-tracebacks \
	  --durations=40 --durations-min=1 $(ARGS)

bench-placement: install  ## Placement beside the reference (ARGS="--hosts 10000 --rows limit,put")
	$(BIN)/python -m benchmarks.placement $(ARGS)

bench-time: install $(BLAZAR)  ## leases beside Blazar's manager, and their targets (ARGS="--rows slots")
	$(BIN)/python -m benchmarks.time --json benchmarks/time/results.json $(ARGS)

bench-month: install  ## a month of leases and other servers, in three ways: an hour (ARGS="--hosts 250 --write": minutes)
	$(BIN)/python -m benchmarks.month $(or $(ARGS),--write)

bench-http: install $(SERVERS)  ## HTTP servers beside ours, ten minutes (ARGS="--servers moorage,waitress --rows raw,end --write")
	PYTHONPATH=$(dir $(SERVERS)) $(BIN)/python -m benchmarks.http_servers $(ARGS)

bench-fairness: install  ## one tenant's latency while another attacks, a quarter of an hour (ARGS="--attacks keys --rounds 1")
	$(BIN)/python -m benchmarks.fairness $(or $(ARGS),--write)

bench-web: install chromium  ## the web page: what it asks of the service, and in a browser, 20 minutes (ARGS="--hosts 10000": two)
	$(BIN)/python -m benchmarks.web $(ARGS)
	$(BIN)/python -m benchmarks.web_browser $(ARGS)

bench-joint: install  ## joint decisions at the size of a cloud, an hour (ARGS="--cells 100x10000 --families mixed --instances 3": a minute)
	$(BIN)/python -m benchmarks.joint $(or $(ARGS),--write)

bench-survivability: install  ## what a fleet of 10,000 hosts survives, half a minute (ARGS="--hosts 2000 --ensembles 200")
	$(BIN)/python -m benchmarks.survivability $(or $(ARGS),--write)

bench-public: install  ## public traces in .cache/public, beside one-at-a-time peers, a quarter of an hour (ARGS="--part 8": a minute, "--data gpu-v2025 --loads 90", "--generated 1")
	$(BIN)/python -m benchmarks.public $(or $(ARGS),--write)

soak: install  ## half an hour of everything at once on SQLite, then on PostgreSQL, with kills; its report is in .cache/soak.md (SECONDS=1800 REPORT=FILE)
	rm -f $(or $(REPORT),.cache/soak.md)
	for database in sqlite postgresql; do \
	  $(BIN)/python -m tests.scenarios.soak.soak --database $$database --seconds $(or $(SECONDS),1800) --kills 4 \
	    --report $(or $(REPORT),.cache/soak.md) || exit 1; \
	done

crash: install  ## kill services and the database hundreds of times, on each database; its report is in .cache/crash.md (KILLS=300 REPORT=FILE)
	rm -f $(or $(REPORT),.cache/crash.md)
	MOORAGE_CRASH_KILLS=$(or $(KILLS),300) MOORAGE_CRASH_REPORT=$(abspath $(or $(REPORT),.cache/crash.md)) \
	  $(BIN)/python -m pytest --nightly tests/scenarios/crash

schedules: install  ## months of leases with a clock that is set, by seeds (SEED=0 SCHEDULES=1000)
	$(BIN)/python -W error -m tests.scenarios.schedules $(or $(SEED),0) $(or $(SCHEDULES),1000)

mutants: install  ## 60 rules broken one at a time in HEAD: do the tests of their area notice? an hour (ARGS="--area capacity")
	-$(BIN)/python -m tests.mutants locate
	$(BIN)/python -m tests.mutants run --homes new $(ARGS)
	$(BIN)/python -m tests.mutants table

ways: install  ## how much of the program one request enters, on each main way (ARGS="--files", "--write")
	$(BIN)/python -m tests.ways $(ARGS)

fuzz-placement: install  ## random requests to us and to the reference: answers must agree (SEED=1 SECONDS=600)
	$(BIN)/python -W ignore -m tests.fuzz $(or $(SEED),1) $(or $(SECONDS),600)

fuzz-doors: install  ## hostile requests to all APIs of one service, for an hour; its report is in .cache/doors.md, the service's log in .cache/doors.log (SEED=1 SECONDS=3600 DATABASE=sqlite)
	$(BIN)/python -m tests.fuzz.doors --seed $(or $(SEED),1) --seconds $(or $(SECONDS),3600) \
	  --database $(or $(DATABASE),sqlite) --report $(or $(REPORT),.cache/doors.md) --log .cache/doors.log

heat-judge: install $(MINICLOUD)  ## templates made from seeds, read by Heat's own engine and by Moorage: they must mean the same (SEED=1 COUNT=3000; WHAT=emitted: what is written of them)
	$(BIN)/python -m tests.heat_judge $(or $(WHAT),generated) --seed $(or $(SEED),1) --count $(or $(COUNT),3000)

heat-survey: install $(MINICLOUD)  ## the templates of folders: how many Heat accepts, Moorage compiles, and why not (FOLDERS="templates")
	$(BIN)/python -m tests.heat_judge survey $(or $(FOLDERS),tests/heat_judge/templates)

# What is too long for every push: run it before a release, and before an issue is closed.
nightly: install $(MINICLOUD) $(NOVAS_TESTS) $(DROP_IN)  ## everything long: hostile requests, the reference's answers, soak, kills, months of leases (SECONDS=1800 each)
	$(MAKE) --no-print-directory fuzz-doors SECONDS=$(or $(SECONDS),1800) REPORT=.cache/doors.md
	$(MAKE) --no-print-directory fuzz-doors SECONDS=$(or $(SECONDS),1800) DATABASE=postgresql REPORT=.cache/doors.md
	$(MAKE) --no-print-directory fuzz-placement SECONDS=$(or $(SECONDS),1800)
	$(MAKE) --no-print-directory soak SECONDS=$(or $(SECONDS),1800)
	$(MAKE) --no-print-directory crash
	$(MAKE) --no-print-directory schedules
	$(MAKE) --no-print-directory heat-judge
	$(MAKE) --no-print-directory heat-judge WHAT=emitted COUNT=600
	$(MAKE) --no-print-directory minicloud-test
	$(MAKE) --no-print-directory nova-functional
	MOORAGE_HYPOTHESIS=nightly $(MAKE) --no-print-directory unit ARGS=--nightly

wheel: install  ## the package and the drop-in for openstack-placement as wheels, in dist/
	$(BIN)/hatchling build --target wheel --directory dist
	cd packaging/drop-in && ../../$(BIN)/hatchling build --target wheel --directory ../../dist

format: install  ## let ruff write the layout and the safe repairs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install  ## build the documentation, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-serve: install  ## the documentation at http://127.0.0.1:8001, rebuilt as you write
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

lock:  ## resolve the dependencies anew and write the hashed locks
	@test -x $(BIN)/uv || { $(PYTHON) -m venv $(VENV) && $(PIP) --require-hashes -r requirements/uv.txt; }
	$(COMPILE) --output-file requirements/base.txt pyproject.toml
	$(COMPILE) --output-file requirements/server.txt --extra server --extra solver --extra keystone --extra postgres --extra mariadb pyproject.toml
	$(COMPILE) --output-file requirements/all.txt --all-extras --group dev --group bench pyproject.toml
	$(COMPILE) --output-file requirements/uv.txt requirements/uv.in
	$(COMPILE) --output-file requirements/keystone.txt requirements/keystone.in
	$(COMPILE) --output-file requirements/minicloud.txt $(FROM_SOURCE) requirements/minicloud.in
	$(COMPILE) --output-file requirements/nova-functional.txt $(FROM_SOURCE) --extra server --extra solver pyproject.toml requirements/nova-functional.in
	$(COMPILE) --output-file requirements/blazar-bench.txt --excludes requirements/blazar-bench.without requirements/blazar-bench.in
	$(COMPILE) --output-file requirements/drop-in.txt --extra server --extra solver --extra keystone --extra postgres --extra mariadb pyproject.toml requirements/drop-in.in
	$(COMPILE) --output-file requirements/http-servers.txt requirements/http-servers.in
	$(COMPILE) --output-file requirements/build.txt requirements/build.in

lock-web:  ## renew the libraries of the web page by requirements/web.in; needs npm
	.ci/lock-web

pictures: install chromium  ## draw the page's pictures for the documentation anew; look at them
	$(BIN)/python -m tests.web.chromium.pictures

changelog: install  ## show what the fragments in changelog.d/ make of the next release
	$(BIN)/towncrier build --draft

clean:  ## remove .venv, caches and everything built
	rm -rf $(VENV) .cache site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
