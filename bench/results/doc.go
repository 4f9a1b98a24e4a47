// Package results holds the last measurements of bench/peers on an idle machine, as data that other packages may
// cite.
//
// # Overview
//
// [Peers] reads peers.json, which `make bench-peers` writes: rows a second of our cpu engine and of the peers, on
// one core, with the processor, the date, the commit and the command. No figure in this package is typed in by hand:
// a figure that the file lacks is absent, and [Report.Rate] reports that.
//
// The folder papers has the runs of bench/papers, of which docs/reproduction.md is written.
//
// # Errors
//
// [Peers] fails only if the embedded file does not parse, which a test excludes.
package results
