// Package trainmgr is the training side: a launcher imports it to get train-ready mini-batches.
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
// [Submit] follows PreSto IV-B. It plans the epoch (sdk/dataset) and hands the job to the storage side (host/api). It
// measures T, the trainer's highest throughput, on dummy mini-batches, and P, the throughput of each drive. It
// allocates as many drives as make their P add up to T, which is ceil(T/P) of equal drives. The job then keeps an input
// queue, bounded in bytes, full. T/P bounds how many drives run at once and not which rows are read: every partition is
// preprocessed, each epoch, by a drive that holds it or by a worker of any reach, and when a running drive has no
// undelivered split left the next drive takes its place. Package trainmgr/allocation holds that arithmetic. With
// [Options.Autoscale] the number of drives follows the trainer while the job runs.
//
// The package is light: it imports no drives, no etcd and no Arrow. Package trainmgr/local wires the drives of this
// machine under a job. Package trainmgr/remote takes the work from a control plane. Both run the same [Job] over
// another [Source].
//
// # The parts
//
//	Throughput    times a step: T
//	Source        says where pieces come from: the drives of an api.Storage, or the leases of a control plane
//	Piece         is consecutive fragments of one split that one drive makes
//	scaling       changes how many drives run while the job runs, by the law of package trainmgr/autoscale
//	splitsharing  shares splits between drives and the trainer's own CPUs (package offload decides how many)
//	Job           iterates, acknowledges, checkpoints, reports
//
// Rooms below hold what stands alone: delivery delivers an epoch from the pieces of a Source and joins fragments,
// inputqueue is the input queue, starvation records why a trainer starved, combined makes one storage of own CPUs and
// drives elsewhere, pacer limits the CPU time of own workers, sidemeter counts what a side makes, profilepass times
// trainer and drives for a profile, and metricfile keeps the metrics.
//
// # Mini-batches of several splits
//
// With dataset.BoundaryNone a mini-batch can have rows of several splits, which different drives make: its fragments.
// Sources, pieces and the room in the input queue are numbered in fragments, and what the trainer sees in mini-batches;
// with dataset.BoundaryPartition the two are the same numbers. A mini-batch of one fragment passes as it is, and the
// others are joined when their last fragment has come.
//
// Fragments that wait count in Options.QueueBytes. A queue that is full of them still takes what the trainer needs
// next: package inputqueue has the rule. How many there are follows from which splits have started. Only a split under
// way, and the ends of a run of splits that follow one another, can have a fragment that waits. In deterministic order
// splits start in the plan's order, so that there is one run. In the order fastest there are at most four runs for each
// stream of the drives. So with S streams a job keeps at most 10 S + 1 mini-batches beside what fits the queue. While a
// mini-batch is joined its fragments are in memory, too.
//
// # Concurrency
//
// A Job's iterator has one user. Checkpoint, Report and Close may be called from any goroutine. Every goroutine that
// a job starts has ended when MiniBatches returns or Close has returned.
//
// # Errors
//
// [ErrOptions] says that the launcher's options are wrong, [ErrClosed] that the job was closed, and [ErrNothingLeft]
// that every mini-batch was acknowledged before. dataset.ErrToken and dataset.ErrOtherJob refuse a token. Errors of
// drives and data arrive from the iterator, wrapped, and end the job: no mini-batch is skipped.
//
// # Debugging
//
// [Report] says what held the job back, in words and numbers. Options.Logger logs every measurement and allocation.
package trainmgr
