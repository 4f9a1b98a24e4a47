// Package presence tracks which ranks' launchers are attached. It is pure: no clock (times are arguments), no
// goroutines, no network.
//
// # Overview
//
// The leader of the control plane reports to a [Tracker] every call of a rank's launcher with its connection
// ([Tracker.Attach], [Tracker.Call]), every connection that closes ([Tracker.Closed]), and every launcher that
// announces that it leaves ([Tracker.Leave]). A rank is attached from its launcher's call on until
//
//	it leaves                     at once
//	its connections are closed    all those on which it called, and it has not called again within Options.Grace
//	it is silent                  it has not called for Options.Silence: its machine or the network has failed
//
// [Tracker.Tick] returns the ranks that have become detached since. A process that is killed closes its connections,
// so that its ranks are detached within the grace. A launcher that is alive calls several times a second: a pool
// that closes one connection and opens another does not detach its rank, and a rank that was detached in error is
// attached again by its launcher's next call.
//
// # Concurrency
//
// A Tracker has one owner. An owner that shares the Tracker among goroutines guards it by a lock.
//
// # Errors
//
// There are none: an event of a rank or a connection that the Tracker does not know changes nothing.
//
// # Debugging
//
// [State] has when a rank called last and, in words, why it counts as detached.
package presence
