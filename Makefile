# Millrace: `make demo` needs Go, make and git; `make test` sets up what it needs.
GO ?= go

.PHONY: all help build demo test test-all race fuzz long golden lint count asm cross bench bench-against bench-peers bench-python bench-vocabularies bench-loaders bench-speed reproduce sweep mutants simulate rtl rtl-exhaustive generate deb wheel container release clean

all: build

# Prints these lines: each target, and the first line of the comment above it.
help:
	@awk '/^#/ { if (said == "") said = substr($$0, 3); next } /^[a-z][a-z-]*:/ && said != "" { split($$1, t, ":"); printf "  %-14s %s\n", t[1], said } { said = "" }' Makefile

# The command, as bin/millrace, and bin/millrace-bench, which measures.
# It prints the packages that it compiles.
build: bin/millrace
	cd bench && $(GO) build -v -o ../bin/millrace-bench ./cmd/millrace-bench

bin/millrace: FORCE
	$(GO) build -v -o bin/millrace ./cmd/millrace

FORCE:

# The main job on one machine, with nothing else installed.
demo: bin/millrace
	./bin/millrace demo

# The tests that Go, Python and bash run, and a table of their tiers at the end.
# All tiers run, whatever fails. The output of each tier is in bin/test. CI=true makes a missing tier a failure.
test:
	bash .ci/test

# Every tier that this machine can run: also emulators, simulators of RTL, a browser, other projects' servers, packages.
test-all:
	bash .ci/test all

# The race detector over every package whose tests can have a race.
# RACE=whole runs it over every package.
race:
	bash .ci/race $(RACE)

# A short run of every fuzz target from its kept corpus. FUZZTIME=5m runs each for five minutes.
# COVERAGE=no builds them without instrumentation, in minutes less: inputs are then changed at random.
fuzz:
	FUZZTIME=$(or $(FUZZTIME),20s) COVERAGE=$(COVERAGE) bash .ci/fuzz

# The checks that take too long for every run; the table at the end has the time of each.
# A row group of 640 MiB through 64 MiB of memory, a million splits, kills by the hundred, every way of a job, soaks.
# LONG=soak runs one of them; LONG_SOAK=2h and LONG_TURNS=50 make the soaks longer.
long:
	bash .ci/long $(LONG)

# The kernels' tests at every level of the instruction set.
# At two levels of the compiler, without assembly, and as on processors that offer less than this one.
golden:
	bash .ci/golden

# gofmt, vet, staticcheck, golangci-lint (.golangci.yml), and whether generated files are what their generators write.
# Every check runs, and the last lines name those that failed; CHECK=golangci runs one of them alone.
lint:
	bash .ci/lint $(CHECK)

# Counts the lines of Go by hand, those of tests, long packages and functions, and exported names that only tests use.
count:
	cd tools && $(GO) build -o ../bin/ ./codesize
	./bin/codesize .
	bash .ci/lint unused

# Writes the kernels' assembly again; lint compares the kept files with the generators' output.
asm:
	bash .ci/asm write

# Checks that arm64 (under QEMU's user mode) makes the same bytes as this machine, and the types of all for darwin.
# And that every level of the instruction set makes them. A function that only Linux has returns an error elsewhere.
# CROSS=whole vets all packages for arm64 and runs all tests of the kernels there, in some minutes more.
cross:
	bash .ci/cross $(CROSS)

# Millrace's own tables, then Millrace beside the peers, which writes capacity/results.
# Run it on an idle machine. It takes about twenty minutes and two cores.
bench: build
	./bin/millrace bench rm --models rm1,rm5 --engine cpu --threads 1
	./bin/millrace bench roofline --threads 1
	./bin/millrace bench wire
	$(MAKE) bench-peers
	$(MAKE) bench-peers PEERS='-threads 2'

# Compares this tree's speed with that of another revision, in turn, by benchstat's test: make bench-against REV=HEAD~5
# It measures RM1 and RM5, or with BENCH='./fpga/unit/sigridhash .' Go benchmarks, and fails if this tree is 2 %
# slower with significance. AGAINST='-rounds 20 -bound 1' gives flags, and AGAINST=-h lists them.
bench-against:
	cd tools && $(GO) build -o ../bin/benchagainst ./benchagainst
	./bin/benchagainst -benchmark '$(BENCH)' $(AGAINST) $(or $(REV),HEAD)

# Millrace beside the peers only; writes capacity/results.
# The first run fetches DuckDB (120 MB) and needs gcc; without gcc there are all peers but DuckDB. PEERS=... gives the
# flags, and PEERS=-h lists them.
bench-peers:
	cd bench/peers && $(GO) run . $(PEERS)

# The same with the peers in Python, in a separate environment that pip fills; then bench-loaders.
bench-python:
	cd bench/peers && python=$$(bash python/environment) && $(GO) run . -python "$$python" $(PEERS)
	$(MAKE) bench-loaders

# Both loops of Piper's and MiniPipe's pipelines beside pyarrow, pandas, Polars and DuckDB, with one thread and two.
# In the same environment; writes capacity/results/vocabularies.md. PEERS=... gives further flags.
bench-vocabularies:
	cd bench/peers && python=$$(bash python/environment) && for threads in 1 2; do \
		CGO_ENABLED=0 $(GO) run . -python "$$python" -threads $$threads -rounds 3 \
		-models criteo-5k,criteo-512k,criteo-1m,criteo-zipf,criteo-5k-tsv,d1-1,d1-2,d1-3 $(PEERS) || exit 1; done

# Millrace beside pyarrow + NumPy, torchdata, torch's DataLoader, NVTabular and tf.data, as a training loop sees them.
# In a separate environment that pip fills; it needs python3-torch. LOADERS=--help lists the flags.
bench-loaders:
	bash bench/peers/python/loaders $(LOADERS)

# README's table of speed: rows per CPU second in Python, beside pyarrow + NumPy, Hugging Face's datasets and DuckDB.
# In the environment of bench-python; SPEED=... gives the flags. It takes about six minutes of processor time.
bench-speed:
	bash bench/peers/python/speed $(SPEED)
	MILLRACE_UPDATE=1 $(GO) test -count 1 ./capacity/results

# The papers' figures and tables; writes capacity/results/papers and docs/reproduction.md.
# Run it on an idle machine. It takes less than half an hour on two cores. PAPERS=... gives flags: --quick, --paper, or
# --note with a sentence that the results keep.
reproduce: build
	./bin/millrace bench papers --results capacity/results/papers --page docs/reproduction.md \
		--note "Run by make reproduce." $(PAPERS)

# Tests Log over all 2^32 inputs, in about ten minutes on two cores.
sweep:
	MILLRACE_SWEEP=1 $(GO) test -timeout 60m -run Sweep ./fpga/unit/...

# Checks that the suite fails for every off-by-one of the mutation list.
# Also that simulated days find the listed edits of the protocol's sources, and that 1,000 days have the kept hashes.
mutants:
	MILLRACE_MUTANTS=1 $(GO) test -timeout 90m -run 'Mutants|OneSeed' ./fpga/unit ./control/simulation

# Days of the control plane's protocol on virtual time, from new seeds, for a minute: SIMULATE='--time 10m'.
# One day, with a line for each event: SIMULATE='--seed 7 --trace'.
simulate:
	$(GO) run ./control/simulation/simulate $(SIMULATE)

# The units in SystemVerilog: lint, simulation beside the kernels, proofs, faults, synthesis.
rtl:
	bash .ci/rtl whole

# The units log and bucketize beside their kernels over all 2^32 float32. It takes an hour or more.
rtl-exhaustive:
	bash .ci/rtl exhaustive

# Generates Go from host/api/v1/millrace.proto; lint compares the kept files with the output.
generate:
	cd tools && $(GO) run ./protogen ../host/api/v1 millrace.proto

# A Debian package of the binary, units, completions and documents, in dist/.
deb:
	tools/package/deb

# A wheel of the Python package with the static binary inside, for Linux on this machine's processor, in dist/.
# pip fetches setuptools and twine once. ARCH="amd64 arm64" builds both.
wheel:
	tools/package/wheel $(or $(ARCH),$(shell $(GO) env GOHOSTARCH))

# A container image of the static binary as an OCI archive, which docker load and podman load read, in dist/.
container:
	tools/package/container $(VERSION)

# Everything of a version, in dist/release-VERSION: binaries, wheels, Debian packages, images, checksums, SBOM, notes.
# The first build for arm64 compiles everything once more, in some minutes.
release:
	tools/package/release

# Removes bin and dist.
clean:
	rm -rf bin dist
