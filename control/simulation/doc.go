// Package simulation simulates days of the protocol between control plane, launchers and nodes. A day runs in one
// goroutine, on virtual time, and follows from one seed. The package checks the properties of the protocol at every
// event.
//
// # What is inside
//
// The product's machines run as they are: package machine with the ledger, the lives of jobs and the presence of
// launchers, package upkeep with what nodes are prepared for, package protocol of trainmgr/remote, which decides what
// launchers say and when, the records that are stored, plans and tokens. Around them stand models, in this package: a
// store with a fence (in place of etcd), members that are elected and carry out what the machines say (in place of
// package control), nodes and workers whose mini-batches are functions of their names, and launchers that carry out
// what their machine says, fetch, queue and train (in place of trainmgr/remote and trainmgr). Goroutines, HTTP, etcd,
// drives and engines are not simulated. docs/testing.md names the tests of those.
//
// # A day
//
// [New] draws a schedule from the seed: jobs with their data, filters, batches, boundaries, ranks, epochs and orders,
// nodes with copies of partitions, workers without data, trainers' own CPUs with shares of the splits, and how often
// each fault occurs. Jobs are cancelled and submitted again with a token. Allocations change. Members and nodes are
// restarted one after another. [World.Run] executes events in the order of their times; events of one time run in the
// order in which they were made. Faults occur in the first part of a day: messages that are late, lost, doubled or
// overtaken, members, launchers and nodes that are cut off from each other or from the store, that die and come back,
// nodes and launchers that die when a part of a mini-batch has come, members that stop for minutes, clocks that run
// apart, leaders that are replaced and do not know it, fetches and preparations that nodes refuse, a store that is
// full, answers late or whose answer is lost. Then they stop, and every job has to end within a bound.
//
// # What is checked
//
// Safety, at every event: a trainer gets each mini-batch of an epoch once over all its runs with tokens, and no
// mini-batch of another rank. The content of a mini-batch, joined where it has fragments of several splits, is that of
// the plan's splits, which the package cuts without the plan's fragments. A token contains exactly the trained
// mini-batches. An acknowledgement that a leader has confirmed stays acknowledged, unless a token takes it back. When a
// job ends, its trainers have trained every mini-batch of every epoch, but for those of the token that the job resumes
// from. A launcher is fenced off only if another process of its rank lived, and fails otherwise only if no leader
// answered for longer than its patience. Liveness: every job ends after the faults have ended, and nodes forget it.
//
// The package computes the ranks' shares without the machines. All events enter a hash. The hash of a seed is the same
// on every machine.
//
// # Debugging
//
// The error of a day that fails names the violated property and the command that repeats the day:
//
//	go run ./control/simulation/simulate --seed N --events M --trace
package simulation
