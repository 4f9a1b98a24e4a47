// Package allocation decides how many workers of a job run at once, and which worker makes the next split.
//
// # Overview
//
// A worker makes mini-batches: a drive that preprocesses its own rows, or the CPU of a node over a plain drive. T is
// the highest throughput of the trainer and P the throughput of one worker, both in rows per second. PreSto (section
// IV-B) allocates T/P devices. The package holds that arithmetic and what follows from it:
//
//	WorkersFor  is T/P of equal workers, rounded up
//	Allocate    counts workers of unequal P, and foretells the stall that placement or a limit causes
//	FillGap     counts the workers without data that make what the holders of the data cannot sustain
//	Assign      chooses from which of these workers each rank takes mini-batches
//	Schedule    starts splits on at most that many workers, and lets the next worker take the place of a worker
//	            without undelivered splits
//
// T/P bounds concurrency and not coverage: every partition is preprocessed, each epoch, by a worker that holds it,
// or by a worker of any reach. The limit of a Schedule may change while it runs. Package trainmgr allocates the drives
// of one process with WorkersFor, Allocate and Schedule. Package control allocates the drives of a cluster
// with WorkersFor and Allocate; there the ledger hands out the splits.
//
// # Concurrency
//
// The package is pure: it has no goroutine, no lock and no clock. WorkersFor and Allocate may be called from any
// goroutine. A [Schedule] has one owner at a time.
//
// # Errors
//
// [ErrNoWorker] when no worker holds a row, and [ErrThroughput] when the P of a worker is not a positive number.
//
// # Debugging
//
// [Allocation].Note names the bound that applies: the trainer, the limit, the placement of the rows, or the workers'
// sum.
package allocation
