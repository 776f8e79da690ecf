# Everything starts here: `make demo`, `make test`, `make docs`, `make bench`, `make papers`, `make lint`, `make soak`, `make fuzz`.

CARGO ?= cargo

# Incremental compilation doubles the disk space of a build, and a CI build is not repeated. Nobody debugs its programs.
ifneq ($(CI),)
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_DEV_DEBUG = false
endif

.PHONY: demo test rust lint browser clients python docs package package-tests site bench soak fuzz fuzzers papers papers-full-size

# The disk by ublk is not compiled by default, because its library takes libclang. It is tested where libclang is, and wherever `CI` is set.
UBLK = $(if $(CI)$(shell ldconfig -p 2>/dev/null | grep 'libclang[-0-9.]*so'),--features bimetal-cli/ublk)

# The main demonstration: every scheme on the real trace in the binary, as a table and as report.html.
demo:
	$(CARGO) run --profile demo --no-default-features --locked --package bimetal-cli -- compare --repeat 3 --measure 1 --html report.html

# Many tests wait for a guest, a server or a disk, so the Python package is built and tested beside the Rust crates.
test: clients browser
	+@$(MAKE) --no-print-directory --jobs rust python

# Lints and tests of all crates.
rust: lint
	$(CARGO) test --quiet --locked --workspace $(UBLK)

# The crates that can be published to a crate index.
PUBLISHED = $(patsubst crates/%/Cargo.toml,--package %,$(shell grep -L '^publish = false' crates/*/Cargo.toml))
# All crates, with and without ublk; then the stores without their crash tests, and the command line without stores.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --locked --workspace --all-targets $(UBLK) -- -D warnings
	$(CARGO) clippy --quiet --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --quiet --locked --package bimetal-live --package bimetal-cli --no-default-features \
		--features bimetal-live/default -- -D warnings
	$(CARGO) test --quiet --locked --package bimetal-lint
	$(CARGO) package --quiet --locked --offline --no-verify --allow-dirty $(PUBLISHED)

# Tests open reports with Chromium. It is installed if possible.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	} || echo "no Chromium, and it cannot be installed: reports are not opened by tests"

# Tests connect real clients to the NBD server, and run databases and a Linux guest on it. The programs are installed if possible. The
# guest's kernel is only unpacked: the first of these kernels that there is. Linux 6.1 has no driver of ublk.
KERNELS = linux-image-6.12-cloud-amd64 linux-image-cloud-amd64
CLIENTS = e2fsprogs nbdkit libnbd-bin python3-libnbd qemu-utils qemu-block-extra fio fuse3 \
	curl sqlite3 postgresql qemu-system-x86 nbd-client busybox-static cpio prometheus xz-utils libclang-dev
GUEST = target/guest
clients:
	@for program in nbdkit nbdinfo nbdcopy nbdsh nbdfuse qemu-img qemu-io fio curl fusermount3 mkfs.ext4 \
			sqlite3 /usr/lib/postgresql/*/bin/postgres qemu-system-x86_64 qemu-storage-daemon nbd-client busybox cpio promtool; do \
		command -v $$program >/dev/null || missing="$$missing $$program"; \
	done; \
	ldconfig -p | grep -q 'libclang[-0-9.]*so' || missing="$$missing libclang"; \
	find $(GUEST)/lib/modules /lib/modules -name ublk_drv.ko 2>/dev/null | grep -q . || missing="$$missing kernel"; \
	[ -z "$$missing" ] || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(CLIENTS) >/dev/null && \
		kernel=$$(apt-cache depends $(KERNELS) 2>/dev/null | sed -n 's/.*Depends: //p' | head -n 1) && \
		mkdir -p $(GUEST) && cd $(GUEST) && apt-get download -qq $$kernel && dpkg -x $$kernel*.deb . && rm $$kernel*.deb && \
		find . -name '*.ko.xz' -exec xz --decompress --force {} + ; \
	} || echo "missing, and cannot be installed, so that some tests are skipped:$$missing"

# The Python package, built like `pip install .` but with the quick `dev` profile, in a separate environment. Then its tests, against the
# command line of the same sources, lints and type checks, and the docs. Without Python 3.11 or a package registry this target is
# skipped, unless `CI` is set.
PYTHON ?= python3
VENV = $(CURDIR)/target/venv
python:
	+@$(call in-environment,package-tests site,the Python package is not tested and the docs are not built)

# The docs as a site, with a notebook that runs with that package.
docs:
	+@$(call in-environment,site,the docs are not built)

# Makes the targets $(1) if their environment can be made, and otherwise prints the message $(2).
in-environment = $(MAKE) --no-print-directory $(VENV)/installed || { \
		[ -z "$(CI)" ] || exit 1; \
		echo "no Python 3.11 with venv, or no package registry: $(2)"; exit 0; \
	} && $(MAKE) --no-print-directory $(1)

# Compiling all modules takes as long as downloading them, and most are never imported.
PIP = --quiet --disable-pip-version-check --no-compile
# Ray is large, and not built for every platform: without it one test is skipped.
RAY = ray==2.60.0 filelock==4.3.1 protobuf==7.36.2
$(VENV)/installed: python/requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install $(PIP) --requirement python/requirements.lock
	@$(VENV)/bin/pip install $(PIP) $(RAY) || echo "Ray cannot be installed: no test runs a sweep on it"
	@touch $@

package:
	PATH=$(VENV)/bin:$$PATH $(VENV)/bin/pip install $(PIP) --no-build-isolation --no-deps \
		--force-reinstall --config-settings=build-args="--profile dev --locked" .

# The tests compare the package with the program `bimetal`. It is built by the same command as the tests of the command line. A build of its
# package alone enables other features of some libraries, and would compile all crates again.
package-tests: package
	$(CARGO) test --quiet --locked --workspace $(UBLK) --no-run --test commands
	$(VENV)/bin/ruff check --quiet python docs contrib
	$(VENV)/bin/ruff format --quiet --check python docs/hooks.py docs/notebooks contrib
	$(VENV)/bin/mypy --no-error-summary
	$(VENV)/bin/python -m mypy.stubtest --concise bimetal._core
	BIMETAL=$(CURDIR)/target/debug/bimetal $(VENV)/bin/pytest

site: package
	PATH=$(VENV)/bin:$$PATH NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict
	@echo "the docs are in target/site: open index.html, or search them with \`$(PYTHON) -m http.server -d target/site\`"

# Speed of every scheme, compared with a bare loop of memory accesses, and of hit-rate curves and every trace decoder.
bench:
	$(CARGO) bench --quiet --locked --package bimetal-study

# Crashes stores of every scheme CRASHES times (a million take ten minutes). Kills servers under a file system KILLS times, and a
# tenth as often under each of SQLite, PostgreSQL and a guest. Executes each fuzz target FUZZ_RUNS times (ten million take two hours). Prints
# the totals. Guests are emulated by one thread each: three tests at a time leave no processor without work until the end.
CRASHES ?= 1000000
KILLS ?= 1000
FUZZ_RUNS ?= 10000000
soak: clients fuzzers
	$(CARGO) run --quiet --release --locked --package bimetal-live --example soak -- $(CRASHES)
	BIMETAL_KILLS=$(KILLS) $(CARGO) test --quiet --release --locked --package bimetal-cli $(UBLK) --test kills -- \
		--nocapture --test-threads=3
	@for target in $(FUZZ_TARGETS); do \
		fuzz/run $(FUZZ_PROGRAM)$$target fuzz/corpus/$$target runs $(FUZZ_RUNS) || exit 1; \
	done

# Fuzzes each target for FUZZ_SECONDS with libFuzzer, on the stable compiler. Findings are in fuzz/artifacts.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS = nbd store
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_PROGRAM = target/fuzz/$(FUZZ_HOST)/debug/fuzz-
fuzz: fuzzers
	@for target in $(FUZZ_TARGETS); do \
		fuzz/run $(FUZZ_PROGRAM)$$target fuzz/corpus/$$target seconds $(FUZZ_SECONDS) || exit 1; \
	done

fuzzers:
	RUSTFLAGS="--cfg fuzzing" RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/fuzz/instrument $(CARGO) build --quiet --locked \
		--package bimetal-fuzz --bins --target $(FUZZ_HOST) --target-dir target/fuzz

# The rules of the laboratory of the WLAFTL paper that are parameters here (docs/papers/wlaftl-2018.md).
LABORATORY = wlaftl.threshold_rule=cycles $(foreach scheme,wlaftl wlaftl-static,$(addprefix $(scheme).,\
	keep_updates=false cycle_time=laps_and_writes max_cycle_time=2 free_blocks=6)) \
	$(addprefix cftl.,threshold_mode=mean wear_rule=true free_blocks=5) \
	$(addprefix comboftl.,hot_percent=75 chances_mode=fixed chances=2 early_migration=false boundary_shift=false detection=none)

# Every table and figure of the papers, on shorter traces, and those of WLAFTL by the rules of its laboratory, too. The results rewrite the
# tables of claims in the docs.
papers:
	$(CARGO) run --release --locked --package bimetal-cli -- paper --quick --json docs/papers/reproduction.json
	$(CARGO) run --release --locked --package bimetal-cli -- paper wlaftl --quick --json docs/papers/wlaftl-laboratory.json \
		$(addprefix --set ,$(LABORATORY))
	BIMETAL_UPDATE_DOCS=1 $(CARGO) test --quiet --locked --package bimetal-cli --test reproduction

# The same with traces and devices of the papers' sizes.
papers-full-size:
	$(CARGO) run --release --locked --package bimetal-cli -- paper --json docs/papers/full-size.json
	BIMETAL_UPDATE_DOCS=1 $(CARGO) test --quiet --locked --package bimetal-cli --test reproduction
