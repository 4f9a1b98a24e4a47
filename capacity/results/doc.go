// Package results holds the last measurements of bench/peers on an idle machine, as data that other packages may
// cite.
//
// # Overview
//
// [Peers] reads peers.json, which `make bench-peers` writes: rows a second of our cpu engine and of the peers, on
// one core, with the processor, the date, the commit and the command. [Reports] reads all runs: those with two threads
// and those over vocabularies too. [Loaders] reads the run of bench/peers/python/loaders.py, which feeds a training
// loop. README's table of speed is written from speed.json, the run of bench/peers/python/speed.py. No figure in this
// package is typed in by hand: a figure that a file lacks is absent, and [Report.Rate] reports that.
//
// The folder papers has the runs of bench/papers, of which docs/reproduction.md is written.
//
// # Errors
//
// [Peers], [Reports] and [Loaders] fail only if an embedded file does not parse, which a test excludes.
package results
