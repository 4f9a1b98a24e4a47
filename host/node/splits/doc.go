// Package splits is what a storage node has open: splits of jobs, the workers that make their mini-batches, and the mini-batches that are made and not yet
// taken.
//
// # Overview
//
// The order of requests makes the work. The first [Table.Get] of a split begins a run: a goroutine that opens the split on its drive and makes mini-batches
// ahead of the requests, up to the number that the latest asked for, as far as the node's and the job's bounds in bytes allow. A mini-batch that is there is given at
// once; else the request waits for it. Who was given one says with [Table.Done] whether it was written: one that was not waits for the next who asks.
//
// Asking again for what was taken opens the split again there. A drive runs few splits at once: a run that has nothing to make gives its place up to one that
// waits for it.
//
// # Concurrency
//
// A Table is safe for concurrent use: Table.mu guards every run and all accounts. A run's goroutine is the only user of its stream, and works without
// the lock; decide is the only place where its course is set. [Table.Finish], [Table.SendAway] and [Table.Close] end runs, cut off the responses that are being
// written, and return when both have ended, so that what lent the mini-batches may be closed.
//
// # Errors
//
// [ErrDraining] and [ErrStopped] ask the client to come again or to go elsewhere; api.ErrUnknownJob for a job that is being finished; the rest is the
// drive's, passed to all who wait, and to Options.Failed. A panic in a worker is an *sdk.PanicError.
//
// # Debugging
//
// Options.Log has every split that is opened, at debug level, fails, or is closed because nobody asks. [Table.State] tells what is open.
package splits
