# The command line in an image: `docker build --tag bimetal .`, `docker run --init --rm bimetal compare`. Stores and traces are mounted:
# `docker run --init --rm --volume "$PWD:/data" bimetal profile trace.csv.gz`. `docs/install.md` also serves a store.
FROM rust:1.95-slim-trixie AS build
RUN apt-get update \
	&& apt-get install --yes --no-install-recommends gcc g++ libc6-dev make pkg-config \
	&& rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package bimetal-cli

FROM debian:trixie-slim
COPY --from=build /source/target/release/bimetal /usr/local/bin/bimetal
RUN useradd --uid 1000 --create-home bimetal && install --directory --owner bimetal /data
USER bimetal
WORKDIR /data
# NBD.
EXPOSE 10809
ENTRYPOINT ["bimetal"]
CMD ["help"]
