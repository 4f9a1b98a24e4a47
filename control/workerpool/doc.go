// Package workerpool decides which workers without data a control plane starts and stops through its operator's hook.
// The package is pure: it has no clock (times are arguments), no lock, no goroutines and no I/O.
//
// # Overview
//
// A [Pool] knows the workers that were started and have not joined, and those that are being stopped. Its owner, the
// leader of the control plane, describes the cluster by a [View] about once a second. Step returns a [Decision], which
// the owner carries out; how many workers there are to be is the law autoscale.DecidePool.
//
//	Step                          a View comes in, and a Decision goes out
//	Started, StopFailed           the end of a call of the hook
//	Restore, RestoreNode          what earlier leaders stored, before the first Step
//	Record                        what is stored of a worker now
//
// # A worker's life
//
// A name is stored before the hook is called with it. A later leader that finds a name whose call has not succeeded
// calls the hook with the same name again, so that no second worker is started. An expected worker counts as one that
// is starting, until it joins or [JoinPatience] is over; then its record goes. A worker is drained before it is
// stopped: the hook is called when the worker's leases have ended, and a worker that has gone after that is no longer
// drained, so that its record may be forgotten. Only workers whose names begin with "pool-" are stopped.
//
// # A new leader
//
// Until Config.Heard, nodes of earlier terms may be alive without having called: they count as starting. Until
// Config.Adopted, ranks may hold leases that the leader does not know, and their jobs do not say yet which workers they
// want: no worker is drained or stopped.
//
// # Concurrency
//
// A Pool has one owner. An owner that shares the Pool among goroutines guards it by a lock.
//
// # Errors
//
// Restore refuses a name that no control plane gives. Step returns no error.
//
// # Debugging
//
// The scripts in testdata show workers from their start to their end. A decision says why in words.
package workerpool
