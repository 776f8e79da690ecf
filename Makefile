# Everything starts here: `make demo`, `make test`, `make bench`, `make papers`, `make lint`.

CARGO ?= cargo

.PHONY: demo test lint browser bench papers

# The main job: every scheme on the real trace inside the binary, as a table and as report.html.
demo:
	$(CARGO) run --release --locked --package bimetal-cli -- compare --repeat 3 --measure 1 --html report.html

test: lint browser
	$(CARGO) test --quiet --locked --workspace

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings

# Tests open reports with Chromium: it is installed where that can be done.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	} || echo "no Chromium, and it cannot be installed: reports are not opened by tests"

# Speed of every scheme beside a bare loop of memory accesses, of hit-rate curves, and of every trace decoder.
bench:
	$(CARGO) bench --quiet --locked --package bimetal-study

# Every table and figure of the papers, on shorter traces, and the tables of claims in the docs from what comes out.
papers:
	$(CARGO) run --release --locked --package bimetal-cli -- paper --quick --json docs/papers/reproduction.json
	BIMETAL_UPDATE_DOCS=1 $(CARGO) test --quiet --locked --package bimetal-cli --test reproduction
