// Package trainmgr is the training side: what a launcher imports to get train-ready mini-batches.
//
// # Overview
//
//	job, err := trainmgr.Submit(ctx, storage, trainmgr.Options{Pipeline: spec, Ranks: []trainmgr.Step{{Run: step}}})
//	...
//	defer job.Close()
//	schema := job.Schema() // before the first mini-batch: build the model's tables
//	for mb, err := range job.MiniBatches(ctx) {
//		if err != nil {
//			return err
//		}
//		...                       // mb is valid until the next one is asked for, unless retained
//		token := job.Checkpoint() // keep it with the model; Options.Resume goes on from it
//	}
//	report, err := job.Report(ctx)
//
// [Submit] follows PreSto IV-B: it plans the epoch (sdk/dataset), hands the job to the storage side (host/api),
// measures T, the trainer's highest throughput, on dummy mini-batches, and P, each drive's; allocates drives so that their P add up to T (ceil(T/P) of
// equal drives); and keeps an input queue, bounded in bytes, full. T/P bounds how many drives run at once, not
// which rows are read: every partition is preprocessed, each epoch, by a drive that holds it, and when a running
// drive has no undelivered split left the next takes its place.
//
// The package is light: it imports no drives, no etcd, no Arrow. Package trainmgr/local wires the drives of this
// machine under it; package trainmgr/remote takes the work from a control plane. Both run the same Job: they differ in their [Source].
//
// # The parts
//
//	Throughput  times a step: T
//	Source      where pieces of work come from: this process's drives, or a control plane's leases
//	Delivery    one epoch under way: a worker a piece, nothing twice
//	queue       the input queue: bounded in bytes, in order where asked, with its depth and the waits at both ends
//	Job         iterates, acknowledges, checkpoints, reports
//
// Package trainmgr/allocation holds T/P: how many drives run at once, which drive takes the place of one that has no
// split left, and the stall to expect.
//
// # Concurrency
//
// A Job's iterator has one user. Checkpoint, Report and Close may be called from any goroutine. Every goroutine that
// a job starts has ended when MiniBatches returns or Close has returned.
//
// # Errors
//
// [ErrOptions] for what the launcher asked wrongly; dataset.ErrToken and dataset.ErrOtherJob for a bad resume token; what drives and
// data did wrong arrives from the iterator, wrapped, and ends the job: nothing is skipped.
//
// # Debugging
//
// [Report] says what held the job back, in words and numbers. Options.Logger tells every allocation and split.
package trainmgr
