// Package lifecycle holds the life of every job: its phases, ranks, generations and epochs, the training runs that
// consume it, and its end. It is pure: no clock (times are arguments), no goroutines, no I/O, no etcd. The leader of
// the control plane owns one Machine and feeds it events, and carries out the effects that follow.
//
// # Overview
//
// A [Machine] holds jobs; a [Job] is added when it is submitted, or when a new leader reads it from etcd. Events are
// methods; [Machine.Ready] returns the effects that they led to, in their order. Call it after every event, under the
// same lock.
//
//	events from launchers   Attached, Called, Left, Announces, Through, WentBack; ConnectionClosed
//	events from the ledger  Granted, Revoked, EpochNeeded, EpochDelivered
//	events from users       Cancel
//	events from the clock   Tick, Review
//
// # Phases
//
// A table of package internal/transition says which phase follows on which event, and one function changes a job's
// phase. An event that the table does not allow is the effect [Refused] and changes nothing.
//
//	preparing   the nodes that hold partitions get the program
//	measuring   P of their drives is measured
//	running     leases are granted
//	waiting     for a node, for new partitions, or for ranks that said that they would say when they are through
//	done, cancelled, failed, abandoned
//
// # Duties
//
// What takes time is not an effect but a [Duty]: prepare the nodes, measure, write the state. Each job has a goroutine
// of the leader's that asks [Job.Duty], carries the duty out without the lock, and answers with an event:
//
//	Prepare          Prepared or PrepareFailed, Delayed meanwhile
//	Measure          Measured or Fail, Delayed meanwhile
//	Commit           Committed or CommitFailed, of the state that StoringNext returned
//	Confirm          Confirmed, once the ledger's acknowledgements are durable
//	StoreGeneration  GenerationStored or GenerationDropped
//	Store            nothing, or StoreFailed, of the state that Storing returned
//
// # What is durable when
//
// A job begins its first epoch, or the first epoch of a further generation, when the state that says so is in etcd (the
// duty Commit): a later leader that found the job being measured would begin with nothing delivered. A job ends as done
// when its acknowledgements are in etcd (the duty Confirm): a later leader finds nothing to deliver of it. A
// rank that is through, or a run that attached, is stored before the caller is answered; [Job.Unwritten] says so.
//
// # Ranks
//
// A [Rank] keeps what its launcher has not heard of: grants are said with every answer until the launcher names their
// leases, since an answer may be lost. A session that another attachment replaced is fenced off. A run that attaches
// where another run has consumed mini-batches is refused ([Job.ForeignRun]), unless it brings a token or says that it
// goes on.
//
// A launcher is gone when its connections are closed, when it is silent, or when it says so (package presence): the
// effect [DetachRank] gives back what its rank held. A job without an attached rank is abandoned after a while that its
// specification or the operator sets, and keeps its token: another job may resume from it.
//
// # Generations
//
// A job that follows its dataset looks for new partitions when every epoch is delivered ([FindPartitions]). What it
// finds is a further generation, with as many epochs again: its data are stored, its nodes prepared, the state is
// committed, and its first epoch begins. Ranks may be in the last two generations.
//
// # Concurrency
//
// A Machine has one owner, which locks if it shares. Jobs and ranks belong to their machine.
//
// # Errors
//
// Events of a job that has ended, and answers to a duty that the job does not have any more, change nothing.
//
// # Debugging
//
// The scripts in testdata are stories: events, and their consequences. story.txt is the first to read. Write one to
// reproduce a question.
package lifecycle
