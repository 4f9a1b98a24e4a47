// Package inspection answers questions about a drive that the caller has opened, or that a storage node has open.
//
// # Overview
//
// [Read] answers one of the questions ([Info], [Health], [Images], [Files]) about an open drive. A drive in a file can
// be opened by one process, so while a node serves it, only the node can answer: [Ask] asks the node (its method
// Inspect). The answers go through JSON unchanged, so that both ways give the same value.
//
// # Concurrency
//
// Everything may be called from any number of goroutines.
//
// # Errors
//
// [ErrKind] says that there is no such question. Other errors are the drive's, or the node's as Connect sends them.
//
// # Debugging
//
// curl -d '{"drive": "d0", "kind": "health"}' -H 'Content-Type: application/json' http://NODE/millrace.v1.Node/Inspect
// asks by hand.
package inspection
