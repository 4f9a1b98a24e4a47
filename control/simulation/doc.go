// Package simulation runs days of the protocol between control plane, launchers and nodes in one goroutine, on virtual
// time, from one seed, and checks what it promises after every event.
//
// # What is inside
//
// The product's machines run as they are: package machine with the ledger, the lives of jobs and the presence of
// launchers, the records that they store, plans and tokens. Around them stand models, in this package: a store with a
// fence (in place of etcd), members that are elected and carry out what the machine says (in place of package
// control), nodes whose mini-batches are functions of their names, and launchers with trainers (in place of
// trainmgr/remote). What only the product's own goroutines, HTTP, etcd, drives or engines can get wrong is outside, and
// has its own tests; docs/testing.md says which test finds what.
//
// # A day
//
// [New] draws a schedule from the seed: jobs with their data, batches, ranks, epochs and orders, nodes with copies of
// partitions, and how often each fault occurs. [World.Run] executes events in the order of their times; events of one
// time run in the order in which they were made. Faults occur in the first part of a day: messages that are late, lost,
// doubled or overtaken, members, launchers and nodes that are cut off from each other or from the store, that stop for
// minutes, die and come back, clocks that run apart, leaders that are replaced and do not know it, a store that answers
// late or whose answer is lost. Then they stop, and every job has to end within a bound.
//
// # What is checked
//
// Safety, at every event: a trainer gets each mini-batch of an epoch once, over all its runs with tokens, and only its
// own rank's; the mini-batch is that which the plan names; a token holds what was trained; what was answered as
// acknowledged stays; only one leader's writes are taken. At the end of a job, every mini-batch of every epoch was
// trained. Liveness: when faults stop, every job ends.
//
// The plan is computed apart from the machines, from the schedule. All events enter a hash: one seed has one hash, on
// every machine.
//
// # Debugging
//
// A day that fails says which promise was broken, and prints the line that runs it again:
//
//	go run ./control/simulation/simulate --seed N --events M --trace
package simulation
