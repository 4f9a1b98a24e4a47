// Package machine is the protocol of the control plane towards launchers, as one machine: the ledger, the lives of jobs
// and the presence of launchers behind the calls that launchers make. It is pure: no clock (times are arguments), no
// goroutines, no I/O, no etcd. The leader owns one [Machine] for its term, and carries out what it returns; package
// control/simulation runs many of them on virtual time.
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
// Events that concern one part only are given to the part: those of drives to Machine.Ledger, the answers to duties
// (package lifecycle) to the job. After every event, under the same lock, call [Machine.Ready] until it returns
// nothing, and carry out the effects in their order.
//
// # Calls
//
// Attach, Acknowledge, Checkpoint and Release have their answer at once. What has to be durable before the caller gets
// it, each of them says; the owner writes the ledger's records (Ledger.Flush) and the job's state
// (lifecycle.Job.Storing) first. A Lease call has its answer at once, or it waits until its rank has news: then the
// answer comes as the effect [Answered], on an event of any kind. The owner keeps the time of a waiting call, and
// reports with Expire that the time is over, or with Abandon that the caller has gone. A number of the owner's names
// a call. Every answer repeats a grant until its rank names the lease, since an answer may be lost.
//
// # Errors
//
// [*EndedError] for a job that has ended, [ErrDone] for one that has nothing left to deliver, [*NotBegunError] for
// one to which nobody can attach yet, [*ConsumedError] for a caller that would unknowingly go on where another run
// stopped. The errors of the ledger come as they are.
//
// # Debugging
//
// Package control/simulation runs days of a machine and writes a line for each event. The scripts of packages ledger
// and lifecycle show what the parts do.
package machine
