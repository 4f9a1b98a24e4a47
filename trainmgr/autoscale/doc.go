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
//
// Package control decides so about the jobs of a control plane, and package trainmgr about a job over its own
// drives, on whatever clock the job has. A region of a drive is a drive here.
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
//   - More drives run if the drives are busy and, for Options.Up without a break, the trainer stalled for more than
//     Options.Stall of the time or its queue held less than one mini-batch. The new number is ceil(T/P), at least one
//     more and at most twice as many.
//   - Fewer drives run if the queue was full for Options.Down without a break and the remaining drives would be busy
//     for no more than 95 % of the time. The new number is the least for which that holds, at least half.
//   - If utilisation is not known, the law removes one drive where T and P say that the others suffice. Otherwise it
//     removes one drive as a try after Options.Probe, and another after Options.Down while the trainer does not
//     starve. Each failed try doubles the wait, up to an hour. Thus the law finds a P that has become better, and the
//     number does not oscillate.
//   - Unless a bound moves, the number does not change within Options.Settle of a change, nor while the trainer takes
//     nothing (it evaluates, or has not begun). It does not change while drives idle although the trainer starves:
//     something else is the bottleneck then, and the decision says so.
//
// The number is at least 1. It is at most the drives that hold undelivered rows plus the workers of any reach, and at
// most the job's bound. Holders come first: workers of any reach fill the number only beyond the holders. If T is not
// known, a job begins with its holders, and gets workers only when the trainer starves.
//
// # The pool of workers
//
// [DecidePool] decides how many workers of any reach to start or stop. Its inputs are the workers that all jobs'
// decisions want, and how much of their machines the live workers use, as DPP's Master uses "CPU, memory and network
// utilization" and buffered tensors. What other processes use of these machines does not count. DecidePool has
// hysteresis of its own: a demand that lasts for seconds starts workers, and a surplus stops workers only after
// PoolInputs.Idle. No worker is started while the live ones are less than half busy and their mini-batches wait to be
// fetched.
//
// # Errors
//
// Decide takes any numbers: a negative, infinite or undefined one counts as not known, and Decide returns no
// error.
//
// # Debugging
//
// Every decision says why in words, and `millrace jobs show --decisions` prints the last ones. A record holds all that
// its decision depends on, so that a test can compute the decisions of a log again, after the law was changed as well.
package autoscale
