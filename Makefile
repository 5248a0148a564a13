# `make help` lists the targets. Two matter on a fresh machine: demo and test.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
TARGET := x86_64-unknown-linux-musl
DEBUG := target/$(TARGET)/debug
RELEASE := target/$(TARGET)/release
STEP := scripts/step
FUZZ_SECONDS ?= 10
# What the tests run beside the lab's own cluster: an older control plane, other people's front doors.
TEST_PARTS := kubernetes-1.36 kubernetes-1.35 kubernetes-1.31 etcd konnectivity coredns pause helm crds traefik haproxy-ingress guest chrony

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

.PHONY: demo
demo: ## One IP, two tenants, a worker in each: the whole picture in a lab that stays up
	@scripts/demo up

.PHONY: demo-down
demo-down: ## Remove the demo without a trace
	@scripts/demo down

# One selection of packages for every cargo call: another would compile the dependencies again.
.PHONY: test
test: ## Formatting, lints, unit tests, fuzzing, real clusters; all but the stories of soak
	@$(STEP) 1/7 "install what is missing" scripts/deps lab
	@$(STEP) 2/7 "check formatting" cargo fmt --all --check
	@$(STEP) 3/7 "compile the workspace and its tests" cargo test --workspace --no-run
	@$(STEP) 4/7 "lint" cargo clippy --workspace --all-targets --quiet -- -D warnings
	@$(STEP) 5/7 "fetch or build the programs of the lab" $(DEBUG)/steward-lab parts $(TEST_PARTS)
	@$(STEP) 6/7 "fuzz the parsers, $(FUZZ_SECONDS) s each" fuzz/run $(FUZZ_SECONDS)
	@$(STEP) 7/7 "every test, those on real clusters among them" env STEWARD_LAB_PROGRAM=$(CURDIR)/$(DEBUG)/steward-lab cargo test --workspace --no-fail-fast

# Apart from the tests, because they take ten minutes each and fail if anything else keeps the machine busy.
.PHONY: soak
soak: ## Stories under load: parts killed and replaced, tenants moved, certificates renewed
	@$(STEP) 1/4 "install what is missing" scripts/deps lab
	@$(STEP) 2/4 "compile" cargo test --workspace --no-run
	@$(STEP) 3/4 "fetch or build the programs of the lab" $(DEBUG)/steward-lab parts $(TEST_PARTS)
	@$(STEP) 4/4 "stories under load" env STEWARD_LAB_PROGRAM=$(CURDIR)/$(DEBUG)/steward-lab cargo test --workspace --no-fail-fast --test modes --test reliability --test datastore -- --ignored --nocapture --test-threads=1

# Apart from the tests, because pods watch for five minutes behind each of seven front doors.
.PHONY: doors
doors: ## Everything behind every front door: ours, Traefik's three, haproxy-ingress, HAProxy
	@$(STEP) 1/4 "install what is missing" scripts/deps lab
	@$(STEP) 2/4 "compile" cargo test --workspace --no-run
	@$(STEP) 3/4 "fetch or build the programs of the lab" $(DEBUG)/steward-lab parts $(TEST_PARTS)
	@$(STEP) 4/4 "fourteen tenants, two behind each front door" env STEWARD_LAB_PROGRAM=$(CURDIR)/$(DEBUG)/steward-lab cargo test --workspace --test every_door -- --ignored --nocapture

# Apart from the tests, because the releases that nothing else needs take half an hour to compile.
.PHONY: versions
versions: ## Every minor of Kubernetes from 1.31 to 1.36: as a tenant with a worker, and upgraded through all
	@$(STEP) 1/4 "install what is missing" scripts/deps lab
	@$(STEP) 2/4 "compile" cargo test --workspace --no-run
	@$(STEP) 3/4 "fetch or build the programs of the lab" $(DEBUG)/steward-lab parts $(TEST_PARTS) kubernetes-1.34 kubernetes-1.33 kubernetes-1.32
	@$(STEP) 4/4 "a tenant of every minor" env STEWARD_LAB_PROGRAM=$(CURDIR)/$(DEBUG)/steward-lab cargo test --workspace --test versions -- --ignored --nocapture

.PHONY: lint
lint: ## Formatting, clippy, generated files
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo xtask generate --check

.PHONY: generate
generate: ## Write the CRDs, policies and reference pages anew
	cargo xtask generate

.PHONY: images
images: ## Reproducible image archives in target/images/*.tar
	@$(STEP) 1/2 "compile the programs" cargo build --release -p steward-operator -p steward-gateway -p steward-gate -p steward-tcp-proxy -p steward-lab
	@$(STEP) 2/2 "pack them" $(RELEASE)/steward-lab images --programs $(RELEASE) --output target/images

.PHONY: bench
bench: ## Us and the rivals under one load; writes bench/RESULTS.md
	@$(STEP) 1/4 "install what is missing" scripts/deps lab
	@$(STEP) 2/4 "compile" cargo build --release -p steward-bench -p steward-lab -p steward-gateway -p steward-gate -p steward-tcp-proxy
	@$(STEP) 3/4 "fetch the rivals that no distribution has" $(RELEASE)/steward-lab parts envoy traefik
	@$(STEP) 4/4 "measure" $(RELEASE)/steward-bench

.PHONY: bench-operator
bench-operator: ## The operator beside Kamaji, objects only
	@$(STEP) 1/3 "install what is missing" scripts/deps lab
	@$(STEP) 2/3 "compile" cargo build --release -p steward-bench -p steward-operator
	@$(STEP) 3/3 "measure" $(RELEASE)/steward-bench operator

.PHONY: fuzz
fuzz: ## Fuzz the parsers for long (SECONDS each, 600 unless given)
	fuzz/run $${SECONDS_EACH:-600}

.PHONY: audit
audit: ## Licences, advisories and banned crates (needs cargo-deny)
	cargo deny check

.PHONY: book
book: ## The user guide as HTML in book/ (needs mdbook)
	mdbook build
