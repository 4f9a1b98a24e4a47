// Package offload compares the decisions of the policies in trainmgr/offload with a sweep of cuts and ratios
// (FastFlow, figures 9 and 10). The result is the distance of a decision's training throughput from the sweep's
// best.
//
// # Overview
//
//	results, err := offload.Simulate(ctx, offload.SimulateOptions{Cases: 1000})
//
// [Simulate] draws machines, trainers and workers, and runs each of them in virtual time: a trainer whose step takes
// CPU and device time, engine threads beside it, a quota of CPU that they share, workers of different speed, a link,
// an input queue, and whole splits that two counters divide between the sides. The policies get only the noisy
// measurements that a profile of 50 to 100 mini-batches would make; Extended also observes the job while it runs. A
// [Machine] is what a case draws.
//
// # Concurrency
//
// Simulate returns when all goroutines that it started have ended.
//
// # Errors
//
// [ErrOptions] says that options are invalid.
package offload
