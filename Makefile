# Every target installs what it needs. `demo` only needs the Rust toolchain; the others need Linux (Debian) and root.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO_DENY := 0.20.2
CARGO_FUZZ := 0.13.2
cluster := tests/cluster
target = $(or $(CARGO_TARGET_DIR),target)

.PHONY: help demo demo-cluster test check fuzz bench cluster-up cluster-down parts

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

demo: ## the full workflow on this machine alone; needs only Rust
	@cargo build --locked
	@$(target)/debug/larder demo

demo-cluster: parts ## the same on a real two-node Kubernetes, until the nodes hold the images
	@cargo build --quiet --locked
	@$(cluster)/with $(cluster)/demo $(target)/debug/larder

test: parts ## every test, with a cluster that comes up before and goes down after (KEEP=1: stays)
	cargo test --locked --no-run
	cargo test --locked --doc
	$(cluster)/with cargo test --locked --lib --bins --tests

check: ## format, lints, licences, documentation, scripts
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	[[ $$(cargo deny --version 2>/dev/null) == "cargo-deny "* ]] || cargo install --locked cargo-deny@$(CARGO_DENY)
	cargo deny --locked check licenses bans sources
	cargo deny --locked --manifest-path fuzz/Cargo.toml check licenses bans sources
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
	for script in .ci/run $$(grep -slE '^#!/usr/bin/env bash' $(cluster)/*) $(cluster)/lib.sh; do bash -n "$$script"; done

fuzz: ## look for inputs that break the readers, a minute for each of them
	[[ $$(cargo fuzz --version 2>/dev/null) == "cargo-fuzz "* ]] || cargo install --locked cargo-fuzz@$(CARGO_FUZZ)
	fuzz/run 60

bench: parts ## measure
	$(cluster)/with cargo bench --locked

cluster-up: ## start the cluster, or find it healthy; prints the kubeconfig's path
	@$(cluster)/install kubernetes >&2
	@$(cluster)/up

cluster-down: ## stop the cluster and remove its state
	@$(cluster)/down

parts:
	@$(cluster)/install kubernetes git-server gitea private-registry buildkit base-image
