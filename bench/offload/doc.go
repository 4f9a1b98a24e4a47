// Package offload compares what a policy of trainmgr/offload decides with a sweep of cuts and ratios (FastFlow, figures
// 9 and 10): how far the training throughput of its decision is from the sweep's best.
//
// # Overview
//
//	results, err := offload.Simulate(ctx, offload.SimulateOptions{Cases: 1000})
//	results, err := offload.Run(ctx, offload.Options{Command: ..., Cores: []float64{0.3, 0.7, 1}})
//
// [Simulate] draws machines, trainers and workers, and runs each of them in virtual time: a trainer whose step takes
// CPU and device time, engine threads beside it, a quota of CPU that they share, workers of unlike speed, a link, an
// input queue, and whole splits dealt out by two counters. The policies see what a profile of 50 to 100 mini-batches
// would measure, with noise, and nothing else; Extended then sees the job while it runs. [SimulateOptions].Queues draws
// cases on a second simulator, [Cluster], which shares no code with the first one, [Machine]. [Run] does the same with
// processes under quotas on this machine.
//
// # Concurrency
//
// Simulate and Run return when everything that they started has ended.
//
// # Errors
//
// [ErrOptions] says that options are invalid.
package offload
