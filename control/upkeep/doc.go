// Package upkeep decides what each storage node has to be given, asked or sent next. It keeps which jobs every node is
// prepared for, and which drives of every node the ledger knows. The package is pure: it has no clock (times are
// arguments), no goroutines, no I/O and no network. The leader of the control plane owns one [Keeper] for its term,
// feeds it events, and carries out the effects.
//
// # Overview
//
// A [Keeper] follows from the jobs that have not ended (Config.Jobs) and from the reports of the nodes. Events are
// methods:
//
//	of heartbeats     Joined, Reported, Renewed
//	of silence        Died, Forgotten
//	of jobs           Ask, Dismiss, Dropped, WorkersNeeded, Withdrawn
//	of the ledger     LeaseReturned
//	answers to calls  Prepared, Finished, Drained
//	of the clock      Tick
//
// After every event, under the same lock, the owner calls [Keeper.Ready] until it returns no effect, and carries out
// the effects in their order:
//
//	Prepare, Finish, Drain                            call a node, without the lock, and report the answer
//	ListDrives, DriveChanged, RemoveDrive, Enlist     change the ledger
//	NeedRoom                                          choose a job that gives its room away
//	Reply                                             the answer to Ask and Dismiss
//
// The files, in the order in which to read them:
//
//	keeper.go     Keeper     events of nodes, the clock
//	report.go     Report     what a node says of itself
//	job.go        Job        what nodes are prepared for
//	pair.go       pair       one job's data on one node
//	calls.go                 Ask, Dismiss, and the answers to calls
//	review.go                what a node has to be given or asked next
//	drives.go                the ledger's view of a node's drives
//	returns.go    returns    the leases whose tickets a node has to refuse
//	questions.go             what the owner may ask
//	effect.go     Effect
//
// # Nodes
//
// An incarnation of a node begins with nothing that an earlier incarnation had. What it reports as prepared counts as
// prepared, except on nodes with workers of any reach: their answer to Prepare names the files of their own machine.
// A call that was under way when the incarnation began says nothing of the new incarnation, and its answer is not
// used. An incarnation that was silent, and lives, still knows what it was asked.
//
// A node is to be prepared for an edition if it holds a partition of the edition and holders may make the job's
// splits, or if a worker of the node serves a rank of the job, or every rank of a job that needs workers beside its
// holders. The calls of one node follow each other in the order in which the jobs were submitted, except those that a
// job waits for (Ask), which are made at once. No node is called for one edition twice at the same time. A call that
// failed is repeated after Config.Retry as long as the edition is wanted. After a refusal, the node is called again
// when it holds other partitions or has other drives.
//
// A node forgets an edition (Finish) when no job uses the edition's digest any more. Two jobs may have one digest. If
// the answer is lost, the next heartbeat that lists the digest has the node called again. A node that listed an edition
// and lists it no more is prepared again.
//
// # Drives
//
// The ledger learns of a node's drives when the node was asked once to prepare each edition that it is wanted for. A
// job that cannot be prepared on the node does not keep other jobs from the node's drives. Drives of a dead node are
// lost to the ledger, and removed from it when the node lists them no more or is forgotten.
//
// # Concurrency
//
// A Keeper has one owner. An owner that shares the Keeper among goroutines guards it by a lock.
//
// # Errors
//
// Events do not fail. An event of a node that is not known, and an answer to a call that was not made, change nothing.
// [*AwayError] answers a job that asks for a node that is dead or not known.
//
// # Debugging
//
// The scripts in testdata are incidents: events, and the calls and changes of the ledger that follow. story.txt is the
// first to read.
package upkeep
