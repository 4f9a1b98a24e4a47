// Package autoscale decides how many drives a job runs at once. It is pure: no clock, no goroutines, no I/O.
//
// # Overview
//
//	c := autoscale.New(autoscale.Options{})
//	for every second or so of a running job {
//		r := c.Decide(autoscale.Inputs{...})   // a Record: options, state before, inputs, decision
//		ledger.Allocate(job, r.Decision.Drives, now)
//		keep the JSON of r
//	}
//	err := autoscale.Replay(records)          // computes every decision again and compares
//
// # The law
//
// DPP (III-B) wants "a non-zero number of buffered tensors (indicating that trainer demand is met) and maximum ...
// utilization". So: the fewest drives that keep the input queue above zero.
//
//   - Start: ceil(T/P) (PreSto IV-B), or every drive that holds a partition where T is not known.
//   - T is the trainer's rate while it does not wait: rows taken over the time that it was not stalled, smoothed. P is
//     a drive's rate while it works: rows taken over the drives' busy time where utilisation is known, else over the
//     time in which the trainer starves, when drives make all they can. Until both were observed, the values that were
//     measured before the job stand in. (FastFlow, section 9, sets workers to ceil(needed / one worker's); T and P are
//     its two numbers, observed while the job runs, which the paper leaves open.)
//   - More drives, if the trainer stalled for more than Options.Stall of the time, or its queue held less than one
//     mini-batch, for Options.Up without a break, and the drives are busy: to ceil(T/P), at least one more, at most
//     twice as many.
//   - Fewer drives, if the queue was full for Options.Down without a break and the remaining drives would be busy no
//     more than 95 % of the time: as many as that takes, at least half. Where utilisation is not known: one fewer, if
//     T and P say that it will do; else one fewer is tried after Options.Probe, and again after Options.Down while
//     that goes well. Each try that fails doubles the wait, up to an hour. So a P that has become better is found, and
//     the number does not swing.
//   - No change within Options.Settle of a change, while the trainer takes nothing (it evaluates, or has not begun),
//     and while drives idle although the trainer starves: then something else is the bottleneck, and the decision says
//     so.
//
// The number is never below 1, nor above the drives that hold undelivered rows and the workers of any reach together,
// nor above the job's bound. Holders come first: what is decided beyond their number are workers of any reach. Where T
// is not known a job begins with its holders, and with workers only when the trainer starves.
//
// # The pool of workers
//
// [DecidePool] decides how many workers of any reach are started and stopped, from what all jobs' decisions want and
// from what the machines of the live workers report, as DPP's Master does with "CPU, memory and network utilization"
// and buffered tensors. It has hysteresis of its own: a want that lasts for seconds starts workers, a surplus has to
// last ten times as long, and workers whose mini-batches wait are not joined by others.
//
// # Errors
//
// Decide takes any numbers: a negative, infinite or undefined one counts as not known. [ErrReplay] says that a log
// does not follow from its inputs.
//
// # Debugging
//
// Every decision says why in words. A log of records is a test: Replay it against a changed law and see where it
// departs.
package autoscale
