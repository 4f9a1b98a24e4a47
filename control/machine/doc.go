// Package machine implements the control plane's side of the protocol with launchers. A [Machine] combines the ledger,
// the lives of jobs and the presence of launchers. The package is pure: it has no clock (times are arguments), no
// goroutines, no I/O and no etcd. A leader owns one Machine for its term and carries out the effects that the Machine
// returns. Package control/simulation runs Machines on virtual time.
//
// # Overview
//
// A [Job] is added when it is submitted, or when a new leader has read it from etcd. Events are methods:
//
//	calls of launchers   Attach, Lease, Acknowledge, Checkpoint, Release
//	of waiting calls     Expire, Abandon
//	of connections       ConnectionClosed
//	of the clock         Tick
//
// The owner reports events of drives to Machine.Ledger, and the answers to duties (package lifecycle) to the job. After
// every event, under the same lock, the owner calls [Machine.Ready] until it returns no effect, and carries out the
// effects in their order.
//
// # Calls
//
// Attach, Acknowledge, Checkpoint and Release return their answers. The comment of each method says which writes must
// be durable before the owner sends the answer: the ledger's records (Ledger.Flush) or the job's state
// (lifecycle.Job.Storing). Lease returns its answer, or the call waits until its rank has news. The effect [Answered]
// has the answer of a call that waited. The owner measures the time of a call that waits. It reports the end of the
// time with Expire, and a caller that has disconnected with Abandon. The owner numbers the calls. Every answer repeats
// a grant until the rank names the lease, since an answer may be lost.
//
// # Errors
//
// [*EndedError] for a job that has ended, [ErrDone] for a job that has nothing left to deliver, [*NotBegunError] for
// a job to which no launcher can attach yet, [*ConsumedError] for a caller whose model would miss mini-batches that
// another run consumed, [ErrDeposed] for a session that a later leader made: the owner answers that it does not lead.
// Errors of the ledger are returned unchanged.
//
// # Debugging
//
// Package control/simulation runs days of a machine and writes a line for each event. The scripts of packages ledger
// and lifecycle show what the parts do.
package machine
