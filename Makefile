# Millrace: `make demo` needs Go, make and git; `make test` sets up what it needs.
GO ?= go

.PHONY: all help build demo test race fuzz long golden lint asm cross bench bench-peers bench-python bench-loaders sweep mutants generate deb wheel container clean

all: build

# These lines: each target, and the first line of what is said above it.
help:
	@awk '/^#/ { if (said == "") said = substr($$0, 3); next } /^[a-z][a-z-]*:/ && said != "" { split($$1, t, ":"); printf "  %-14s %s\n", t[1], said } { said = "" }' Makefile

# The command, as bin/millrace.
build:
	$(GO) build -o bin/millrace ./cmd/millrace

# The main job on one machine, with nothing else installed.
demo: build
	./bin/millrace demo

# Every tier that this machine can run, and a table of them at the end.
# A tier that fails hides no other. What each printed is in bin/test. CI=true makes a missing tier a failure.
test:
	bash .ci/test

# The race detector over every package whose tests hold goroutines.
# RACE=whole over every package.
race:
	bash .ci/race $(RACE)

# A short run of every fuzz target from its kept corpus. FUZZTIME=5m for a long one.
fuzz:
	FUZZTIME=$(or $(FUZZTIME),20s) bash .ci/fuzz

# What takes too long for every run; its table at the end says how long.
# A row group of 640 MiB through 64 MiB of memory, a million splits, kills by the hundred, every way of a job, soaks. LONG=soak for one
# of them; LONG_SOAK=2h and LONG_TURNS=50 for longer soaks.
long:
	bash .ci/long $(LONG)

# Kernels' tests at every level of the instruction set.
# At both of the compiler's, without assembly, and where the processor offers less than this one.
golden:
	GOAMD64=v1 $(GO) test ./fpga/unit/... ./fpga/engine/...
	GOAMD64=v3 $(GO) test ./fpga/unit/... ./fpga/engine/...
	$(GO) test -tags purego ./fpga/unit/... ./fpga/engine/...
	MILLRACE_CPU=generic $(GO) test -run 'Golden|Kernel|Path|Table|Reference' ./fpga/unit/... ./fpga/engine/...
	MILLRACE_CPU=avx2 $(GO) test -run 'Golden|Kernel|Path|Table|Reference' ./fpga/unit/... ./fpga/engine/...

# gofmt, vet, staticcheck, golangci-lint (.golangci.yml), and that generated files are what their generators write.
# Every check runs and the last lines name those that failed; CHECK=golangci for one of them alone.
lint:
	bash .ci/lint $(CHECK)

# Writes the kernels' assembly anew; lint compares what is kept with what this would write.
asm:
	bash .ci/asm write

# The same bytes on arm64 (under QEMU's user mode) as here; darwin builds.
# And at every level of the instruction set. What only Linux can do says so at run time. CROSS=whole vets all packages for arm64 and runs all tests of the kernels there, in some minutes more.
cross:
	bash .ci/cross $(CROSS)

# Our own tables, then ours beside the peers, which writes bench/results.
# On an idle machine: it takes about twenty minutes, and two cores.
bench: build
	./bin/millrace bench rm --models rm1,rm5 --engine cpu --threads 1
	./bin/millrace bench roofline --threads 1
	./bin/millrace bench wire
	$(MAKE) bench-peers
	$(MAKE) bench-peers PEERS='-threads 2'

# Ours beside the peers only; writes bench/results.
# The first time this fetches DuckDB (120 MB) and wants gcc; without gcc there are all peers but DuckDB. PEERS=... are its flags: PEERS=-h tells.
bench-peers:
	cd bench/peers && $(GO) run . $(PEERS)

# The same with the peers in Python, in an environment of their own that pip fills; then bench-loaders.
bench-python:
	cd bench/peers && python=$$(bash python/environment) && $(GO) run . -python "$$python" $(PEERS)
	$(MAKE) bench-loaders

# Millrace beside pyarrow + NumPy, torchdata, torch's DataLoader and NVTabular, as a training loop sees them.
# In an environment of their own that pip fills; wants python3-torch. LOADERS=--help tells its flags.
bench-loaders:
	bash bench/peers/python/loaders $(LOADERS)

# Exhaustive: Log over all 2^32 inputs, about ten minutes on two cores.
sweep:
	MILLRACE_SWEEP=1 $(GO) test -timeout 60m -run Sweep ./fpga/unit/...

# Every off-by-one of the mutation list must fail the suite.
mutants:
	MILLRACE_MUTANTS=1 $(GO) test -timeout 30m -run Mutants ./fpga/unit

# Go from host/api/v1/millrace.proto; lint compares.
generate:
	cd tools && $(GO) run ./protogen ../host/api/v1 millrace.proto

# A Debian package of binary, units, completions and documents, in dist/.
deb:
	tools/package/deb

# Wheels of the Python package with the static binary inside, for Linux on x86_64 and aarch64, in dist/.
# pip fetches setuptools and twine once. tools/package/wheel-check installs one and tries it.
wheel:
	tools/package/wheel

# A container image of the static binary, offline, with buildah, podman or docker.
container:
	tools/package/container $(VERSION)

# Removes bin and dist.
clean:
	rm -rf bin dist
