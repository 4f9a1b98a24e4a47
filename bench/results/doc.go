// Package results holds what bench/peers measured last on an idle machine, as data that other packages may cite.
//
// # Overview
//
// [Peers] reads peers.json, which `make bench-peers` writes: rows a second of our cpu engine and of the peers, on one
// core, with the processor, the date, the commit and the command. Nothing in this package is typed in by hand: a figure
// that the file lacks is absent, and [Report.Rate] says so.
//
// # Errors
//
// [Peers] fails only if the embedded file does not parse, which a test excludes.
package results
