// Command peers compares Millrace with the libraries that a user would use without it: the same files, the same
// operators, the same columns out, on one core.
//
//	cd bench/peers && go run .                           # writes ../../capacity/results/peers.json and peers.md
//	go run . -models rm1 -peers duckdb,arrow -rounds 9   # some of it
//	go run . -models rm1,rm1-real -criteo day_11.tsv      # generated rows beside Criteo's own, repeated
//	go run . -threads 2                                  # writes ../../capacity/results/peers-2.json and peers-2.md
//	make bench-python                                    # from the root: with the peers in Python
//	make bench-vocabularies                              # from the root: Piper's and MiniPipe's pipelines
//	make bench-speed                                     # from the root: README's table, by python/speed.py
//
// It is a module of its own because DuckDB wants cgo and 120 MB of library, which a build of Millrace should not
// need. With CGO_ENABLED=0 it builds without DuckDB, and its table says so.
//
// # What is compared
//
// Files are those of host/workload: RM1 and RM5, PLAIN uncompressed, Snappy and ZSTD with dictionaries, every feature
// present unless -coverage says otherwise, in memory (ours, arrow-go and parquet-go read a slice of bytes; DuckDB and
// Python read the file from a file system in memory). Operators are those of the models' pipelines: fill null, clamp,
// log(x+1); SigridHash modulo 500,000, of ids and of lists of ids; Bucketize and SigridHash for generated features.
//
// Millrace and every peer must produce the columns in memory, a block of rows at a time: label, dense features as
// float32, ids as int32, for lists values and lengths. No peer may aggregate the columns away. Ours also makes
// mini-batches (dense row-major, ids feature-major in one tensor). Peers need not make mini-batches, and this is not
// counted in their favour.
//
// A peer is written as its user would write it, and then made faster where that was easy. Footers are read once.
// DuckDB's statement is prepared once and its result is streamed. DuckDB plans the statement again for each turn
// (0.2 s for RM5's columns), and that time is not counted; floats are clamped by CASE, and buckets, which it has no
// function for, are computed from the borders' being log-spaced. parquet-go is read by typed slices of a page, never
// by its boxed values. NumPy uses its fast float32 logarithm.
//
// DuckDB is measured with its own hash, which a user of DuckDB would use, and with SigridHash written in SQL. The
// row without buckets makes no generated features and does less than ours; the table has it because DuckDB is
// slowest at buckets.
//
// TorchArrow does not install (the package index has none for Python 3.11). The peer is a Go version of the loops in
// TorchArrow's sources, since PreSto counts processor cores that run TorchArrow. The work that Velox adds around the
// loops is left out.
//
// # Vocabularies
//
// The models criteo-5k to d1-3 are others: Piper's and MiniPipe's pipelines, whose ids are places in vocabularies by
// first appearance. Ours carries both loops out, with the vocabularies in memory, and makes mini-batches. The peers are
// pyarrow's dictionary_encode, pandas' factorize, Polars and DuckDB, all in Python, which make labels, logarithms and
// ids as columns. Everybody reads the file in each turn, and nobody writes one. No peer reads packed rows (criteo-5k,
// -512k, -1m, -zipf), so NumPy reads and transposes them for all peers, in blocks that fit the caches, into columns
// that stay allocated. NVTabular's Categorify is left out: its ids are by frequency. With -threads 2 everybody takes
// two threads over one file. The tables are capacity/results/vocabularies.md and vocabularies-2.md.
//
// # In Python
//
// python/speed.py compares what a user of Python has, by the processor time of all processes; its beginning says how,
// and docs/performance-workloads.md what its sides are. With -engine this program is one of the sides: the cpu engine
// alone. python/loaders.py compares ways to feed PyTorch.
//
// # Before timing
//
// One turn of each peer is compared with ours, all of it: labels, lengths and ids must be equal, logarithms too, within
// 1 ulp where the peer takes float64's logarithm and rounds (the table says how many differ), 4 ulp where its logarithm
// is float32's. Where the hash is another, the ids are compared with that hash computed in Go. A peer whose output
// differs is reported as differing, and not timed.
//
// # Timing
//
// In each round every contender is measured once, for at least -time, in whole turns over the file (a turn that takes
// five times as long is cut). All threads are tied to one processor, and the Go scheduler has one, so that the costs of
// garbage collection and helper threads count for their contender. The table gives medians and extremes of the rounds,
// and the ratio of millrace to the peer in the same round. The processor's clock is given beside the wall's, for
// machines on which other programs run.
//
// # More threads
//
// With -threads 2 the same rows lie in two files of half of them. Every contender runs one goroutine a file (ours with
// an engine of one thread each, DuckDB with a database of one thread each), so that no goroutine waits for another.
// DuckDB with threads=2 over both files divides the work itself, but the rows of a streamed result come from little
// more than one thread. No thread is tied to a processor, so the machine must be idle; peers in Python have one thread
// only and are left out.
//
// # Concurrency
//
// One goroutine does everything, but for -threads above 1; a Python peer is a process that answers one question at a
// time.
//
// # Errors
//
// A peer that cannot start or differs costs its row only. Whatever else fails ends the run, before anything is written.
package main
