// Package review compares a plan with a job that ran: which assumption was off, by how much, and what the plan would
// have been with what the job measured.
//
// # Overview
//
// [Plan] is what was planned, with its figures; [Ran] is what a job did. [RanOf] reads the report of
// `millrace train --output json`; of a job of a control plane only a part is known, and zeros say so. [Compare] returns
// a [Review].
//
// Each [Assumption] is a figure of the plan beside the same figure of the job. Alone in the plan's place, the job's
// figure moves the drives (or cores) that the plan wants at once; assumptions are sorted by that, the one that moves
// them most first. Those that move them equally are sorted by how far they were off. A figure that moves nothing binds
// nothing in this plan, however far it was off.
//
// The drives that are wanted are not rounded up here, so that a small change shows.
//
// # Concurrency
//
// The package is pure.
//
// # Errors
//
// [ErrReport] for a document that is not a report of a job, or one of a job that did not run.
package review
