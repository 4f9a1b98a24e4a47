// Package inspection asks what a drive is and how it does: of a drive that is opened for it, and of one that a storage
// node has open.
//
// # Overview
//
// [Read] answers one of the questions ([Info], [Health], [Images], [Files]) of an open drive. The answers are values
// that go through JSON unchanged, so that a node answers the same question over the wire (the method Inspect) and [Ask]
// gives the same value: a drive in a file has one opener, and while a node serves it, the node is whom to ask.
//
// # Concurrency
//
// Everything may be called from any number of goroutines.
//
// # Errors
//
// [ErrKind] for a question that there is not. Others are the drive's, or the node's as Connect sends them.
//
// # Debugging
//
// curl -d '{"drive": "d0", "kind": "health"}' -H 'Content-Type: application/json' http://NODE/millrace.v1.Node/Inspect
// asks by hand.
package inspection
