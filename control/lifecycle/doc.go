// Package lifecycle holds the life of every job: its phases, ranks, editions and epochs, the training runs that
// consume it, and its end. It is pure: no clock (times are arguments), no goroutines, no I/O, no etcd. The leader of
// the control plane owns one Machine and feeds it events, and carries out the effects that follow.
//
// # Overview
//
// A [Machine] holds jobs; a [Job] is added when it is submitted, or when a new leader reads it from etcd. Events are
// methods; [Machine.Ready] returns the effects of the events, in their order. Call it after every event, under the
// same lock.
//
//	events from launchers   Asked, Attached, Called, Left, Announces, Through, WentBack; ConnectionClosed
//	events from the ledger  Granted, Revoked, EpochNeeded, EpochDelivered
//	events from users       Cancel
//	events from the clock   Tick, Review
//
// The life of a job, from the top to the bottom. On the left is what the leader does, on the right what the machine
// makes of the answer:
//
//	Add             preparing
//	Prepare         measuring
//	Measure         P, T and the number of drives are known
//	Commit          running, BeginEpoch: ranks attach, are granted leases, and acknowledge
//	EpochNeeded     BeginEpoch, of the next epoch
//	EpochDelivered  of the last epoch: every mini-batch is acknowledged
//	Confirm         done; or waiting, for ranks that may still go back to an earlier checkpoint;
//	                or FindPartitions, of a job that follows its data set
//	Store, Retire   the end is stored, and the nodes forget the job
//
// A [Job] is made of parts, a type each for one subject. The parts share the job's terms and stored state, and a part's
// methods are the job's. The files, in the order in which to read them:
//
//	machine.go     Machine      jobs, effects, the clock
//	life.go        life         what the parts of a job share, and how a job ends
//	phase.go                    the table of phases
//	job.go         Job          the parts, a job that is added, and its conclusion
//	duty.go                     the owner's work for a job, which depends on all parts
//	edition.go     editionList  epochs, and the data that they go over
//	delivery.go    delivery     what is acknowledged, and whether the job ends
//	speed.go       rates        P, T and the number of drives
//	attach.go      attendance   launchers come, call and go
//	rankset.go     rankSet      the ranks' grants, runs and announced ends
//	rank.go        Rank         what the answers to a rank contain
//	room.go        room         whether nodes are prepared for the job
//	effect.go      Effect
//
// # Phases
//
// A table of package internal/transition lists which phase follows on which event, and one function changes a job's
// phase. An event that the table does not allow leads to the effect [Refused] and changes nothing.
//
//	preparing   the nodes that hold partitions get the program
//	measuring   P of their drives is measured
//	running     leases are granted
//	waiting     for a node, for new partitions, or for ranks that said that they would say when they are through
//	done, cancelled, failed, abandoned
//
// # Duties
//
// Work that takes time is not an effect but a [Duty]: to prepare the nodes, to measure, to write the state. The
// leader runs one goroutine for each job. The goroutine calls [Job.Duty], carries out the duty without the lock, and
// answers with an event:
//
//	Prepare          Prepared or PrepareFailed, Delayed meanwhile
//	Measure          Measured or Fail, Delayed meanwhile
//	Commit           Committed or CommitFailed, of the state that StoringNext returned
//	Confirm          Confirmed, once the ledger's acknowledgements are durable
//	StoreEdition     EditionStored or EditionDropped
//	Store            nothing, or StoreFailed, of the state that Storing returned
//	Retire           nothing: the nodes forget the job, whose end is stored
//	Withdraw         Withdrawn: the nodes forget the job, which no rank calls
//	Rest             nothing: there is no work until the next event
//
// # What is durable when
//
// A job begins its first epoch, or the first epoch of a further edition, when the job's next state is in etcd
// (the duty Commit): a later leader that found the job in the phase measuring would begin with nothing delivered. A
// job ends as done when its acknowledgements are in etcd (the duty Confirm), so that a later leader finds nothing
// left to deliver. The leader stores that a rank is through, or that a run attached, before it answers the caller;
// [Job.Unwritten] reports whether the state differs from the stored one.
//
// # Ranks
//
// A [Rank] keeps the news that its launcher has not confirmed: every answer repeats a grant until the launcher names
// its lease, since an answer may be lost. A session that another attachment replaced is fenced off. A run that
// attaches to a job of which another run has consumed mini-batches is refused ([Job.ForeignRun]), unless the run
// brings a token or states that it continues.
//
// A launcher is gone when its connections are closed, when it is silent, or when it reports that it leaves (package
// presence): the effect [DetachRank] gives back the leases of its rank. A job without an attached rank is abandoned
// after a time that its specification or the operator sets. The job keeps its token, and another job may resume from
// the token.
//
// # Room
//
// A job that is prepared on nodes holds room there: memory of drives, and a place among the nodes' jobs. A job that no
// rank calls gives its room to a job whose ranks call and that a node refuses for lack of room ([Job.GiveRoom]). It is
// suspended then: no rank can attach, and the nodes forget the job. When a rank asks to attach, or a session of before
// calls, the nodes are prepared again (the duty Prepare), for all editions that ranks may be in. Nothing is measured
// again. Whether a job is suspended is stored. Two jobs that are being prepared may each have the room for which the
// other waits. Then the one that was submitted later yields ([Job.YieldRoom]), and is prepared again once the other has
// its room.
//
// # Editions
//
// A job that follows its dataset looks for new partitions when every epoch is delivered ([FindPartitions]). The new
// partitions form a further edition with the same number of epochs, or with Terms.FollowOnce with one: its data are
// stored, its nodes prepared, the state is committed, and its first epoch begins. Its epochs have the numbers behind
// those of the edition before it. Ranks may be in the last two editions.
//
// # Concurrency
//
// A Machine has one owner. An owner that shares the Machine among goroutines guards it by a lock. Jobs and ranks
// belong to their machine.
//
// # Errors
//
// An event of a job that has ended changes nothing, and neither does the answer to a duty that the job no longer
// has.
//
// # Debugging
//
// The scripts in testdata are stories: events, and their consequences. story.txt is the first to read. Write one to
// reproduce a question.
package lifecycle
