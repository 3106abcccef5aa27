# The few commands of this repository. Each is one line of what CONTRIBUTING.md explains.

CARGO ?= cargo

.PHONY: all setup test test-real test-servers test-units test-packaging demo-monitoring lint cost fmt generated deny bench peers soak mutants security doc clean

all: test lint

setup: ## install what is missing; the tests begin with it
	scripts/setup

# Built with the tests. Whoever runs the conformance tests alone has it built anew, with other features and so almost all of it.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
BINARY := $(TARGET)/debug/watchkeeper

GENERATOR := --manifest-path crates/kinds/generator/Cargo.toml --target-dir "$(TARGET)/generator"

test: setup ## every test that CI runs
	PATH="$(TARGET)/conformance/bin:$$PATH" WATCHKEEPER_CONFORMANCE_SERVER="$(BINARY)" CARGO="$(CARGO)" scripts/test-workspace
	$(CARGO) test --quiet $(GENERATOR)
	PATH="$(TARGET)/conformance/bin:$$PATH" PACKAGING_BUILT=1 scripts/test-packaging kustomize manifests workflow

test-real: ## the tests of the framework against the real kube-apiserver and etcd, after `make peers`
	scripts/test-real

test-packaging: ## programs of others judge what `generate` and `image` make of the operators, the API server and the gateway; builds them first, needs Go, and `make peers`
	scripts/packaging-tools
	scripts/test-packaging
	scripts/test-types

demo-monitoring: ## Debian's Prometheus scrapes `up` with the generated alerts; a fault is provoked, one fires, and ends; kubectl is needed
	scripts/demo-monitoring

lint: ## formatting, layers, clippy and documentation, warnings denied; licences and advisories where that is possible
	$(CARGO) fmt --all --check
	scripts/layers
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --all-features --no-deps --quiet
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny --log-level error check bans licenses sources; \
	else echo "licences: NOT CHECKED: cargo-deny is not installed (scripts/setup --deny)"; fi
	@scripts/advisories

cost: ## what a release and what is shipped cost to build; fails above the limits
	CARGO="$(CARGO)" bench/build/run release dist

deny: ## licences, duplicates, sources and known advisories
	scripts/setup --deny
	$(CARGO) deny check

# Groups to measure, or all: make bench GROUP="lists queue"
GROUP ?=

bench: ## side by side with the peers; prints the table and, if all is measured, writes bench/RESULTS.md with its charts
	-bench/peers/build # where they cannot be built, the rows that need them say so
	CARGO="$(CARGO)" bench/run $(GROUP)

peers: ## the real kube-apiserver, kube-controller-manager, kubectl and etcd, and programs on client-go, to compare with: needs Go, takes a while once
	bench/peers/build

test-units: ## the systemd units of deploy/servers, on three addresses of this machine
	$(CARGO) build --package watchkeeper-cli
	WATCHKEEPER="$(TARGET)/debug/watchkeeper" scripts/test-units

test-servers: ## the tests of the framework against three of our servers over one etcd, behind a proxy that takes turns
	scripts/test-servers

soak: ## the random tests, a hundred times as many, and an hour of requests that were changed at random
	WATCHKEEPER_CASES=300000 WATCHKEEPER_SCHEDULES=3000000 WATCHKEEPER_INTERLEAVINGS=300000 \
	STORAGE_CASES=200000 $(CARGO) test --release --workspace --all-features
	$(CARGO) test --release -p watchkeeper-informer --test bounded -- --ignored --nocapture
	$(CARGO) test --release -p watchkeeper-sources --all-features -- --ignored
	$(CARGO) test --release -p watchkeeper-reactor --test bounded -- --ignored --nocapture
	$(CARGO) test --release -p watchkeeper-gateway -- --ignored --nocapture --test-threads 1
	$(CARGO) test --release -p watchkeeper-webhook --test webhook -- --ignored --nocapture --test-threads 1
	WATCHKEEPER_CLUSTER_ROUNDS=200 $(CARGO) test --release -p watchkeeper-storage --features etcd --test linearizability whatever
	$(CARGO) test -p watchkeeper-cli --test new -- --ignored
	$(CARGO) test -p watchkeeper-macros --test compile -- --ignored
	$(CARGO) test -p watchkeeper --test features -- --ignored
	@for source in channel etcd files http mysql postgres sqlite union webhook; do \
		echo "sources with $$source alone"; \
		$(CARGO) check --quiet -p watchkeeper-sources --no-default-features --features $$source || exit 1; \
	done
	CARGO="$(CARGO)" scripts/fuzz 3600

# Which crate, and which part of all its mutants: make mutants CRATE=queue SHARD=3/8
CRATE ?= workloads
SHARD ?= 0/16

mutants: ## changes a crate in many small ways, one at a time, and lists the changes that none of its tests notices; takes an hour
	@command -v cargo-mutants >/dev/null || { echo "cargo-mutants is not installed: cargo install --locked cargo-mutants" >&2; exit 1; }
	nice -n 10 $(CARGO) mutants --package watchkeeper-$(CRATE) --shard $(SHARD) --sharding round-robin --timeout 600 --no-shuffle \
		--all-features -- --lib --tests

# A release build: what is measured is what people run.
RELEASE := $(TARGET)/release

security: ## who may do what beside the record of kube-apiserver, the fuzzers, and the limits under attack, into bench/ATTACKS.md; for a quiet machine
	$(CARGO) build --release -p watchkeeper-cli -p watchkeeper-bench-attacks
	WATCHKEEPER_CONFORMANCE_SERVER="$(RELEASE)/watchkeeper" $(CARGO) test -p watchkeeper-conformance --test paths
	WATCHKEEPER_CONFORMANCE_SERVER="$(RELEASE)/watchkeeper" $(CARGO) test -p watchkeeper-fuzz
	"$(RELEASE)/watchkeeper-bench-attacks" --table

doc: ## the API documentation
	$(CARGO) doc --workspace --all-features --no-deps --open

fmt:
	$(CARGO) fmt --all

generated: ## crates/kinds/src/generated, after a change to crates/kinds/data or another version of k8s-openapi
	$(CARGO) run --quiet $(GENERATOR)

clean:
	$(CARGO) clean
