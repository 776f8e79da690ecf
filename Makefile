# Everything starts here: `make demo`, `make test`, `make bench`, `make lint`.

CARGO ?= cargo

.PHONY: demo test lint bench

# The main job: every scheme on the real trace inside the binary.
demo:
	$(CARGO) run --release --locked --package bimetal-cli -- compare --repeat 3 --measure 1

test: lint
	$(CARGO) test --quiet --locked --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

# Speed of every scheme beside a bare loop of memory accesses, of hit-rate curves, and of every trace decoder.
bench:
	$(CARGO) bench --quiet --locked --package bimetal-study
