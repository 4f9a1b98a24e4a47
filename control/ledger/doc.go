// Package ledger tracks which mini-batches of every job are delivered, which are leased, and which drive makes the
// next ones. It is pure: no clock (times are arguments), no goroutines, no I/O, no etcd. The leader of the control
// plane owns one, feeds it events, and carries out the effects that follow.
//
// # Overview
//
// An epoch's plan (sdk/dataset) numbers the mini-batches. The mini-batches that a job still owes (all, without those of
// the token that it resumes from) are cut into as many contiguous parts of equal count as the job has ranks: a rank's
// share. A rank is granted leases: pieces [from, to) of one split of its share, on one drive that holds the split's
// partition. The rank pulls them from that drive's node, delivers mini-batches, and acknowledges ranges of them. What
// is acknowledged is delivered. A lease that comes back is granted again, from its first number that is not delivered.
//
// # Fragments
//
// A mini-batch whose rows lie in several splits has a fragment in each (dataset.Fragment); with BoundaryPartition every
// mini-batch is one fragment of the same number. Shares, splits, records and leases have numbers of fragments. The runs
// of Acknowledge, tokens, what a rank owns, and the counts of Status are of mini-batches. A mini-batch belongs to one
// rank, and its fragments become delivered together.
//
// A rank fetches every fragment of a lease without waiting for those of a later lease, since the later lease may need
// the stream of this one. It reports a lease as fetched when it has every fragment, even if the last one waits for the
// rest of its mini-batch.
//
// # The calls, in order
//
// A leader that starts:
//
//	l := ledger.New(ledger.Config{Fence: rev, GrantAfter: now.Add(2 * beat)})  // the adopt window
//	l.AddJob(ledger.Job{...})                  // every job that is stored
//	l.Restore(record)                          // its "ranks" record, if there is one
//	for _, e := range l.Live(job) {            // epochs that some rank is in; none: begin the first
//		l.Begin(ledger.Epoch{Job: job, Number: e, Plan: plan, Resume: token, ...}, now)
//	}
//	l.Restore(record)                          // its marks and chunks (format.RecordOf makes one of a key and a value)
//	l.EndRestore(job)                          // when all of the job's records were restored
//
// Events, each followed by carrying out l.Ready():
//
//	PutDrive, DrainDrive, LoseDrive, RemoveDrive   // from heartbeats, and from their absence
//	Attach(job, rank, token, now)                  // answer after Flush has been made durable
//	Want(job, session, epoch, n, now)              // a Lease call: the rank waits for n pieces; 0 withdraws
//	Hold(job, session, Progress{...}, now)         // the leases that the call names; unknown ones are revoked
//	Adopt(job, session, leases, now)               // the leases that the call shows, after a failover
//	Acknowledge(job, session, epoch, runs, now)    // answer after Flush has been made durable
//	Release(job, session, leases, reason, why, now)
//	Detach(job, rank, why, now)                    // the rank's launcher has ended, or is silent
//	Enlist(job, worker, ready, now)                // a worker of reach Any was prepared for the job
//	Allocate(job, drives, now)                     // from the autoscaler
//	AllowWorkers(job, workers, now)                // from the autoscaler: workers of reach Any beside the holders
//	ShareSplits(job, rank, share, now)             // from a policy: the share that the rank's own CPUs do not make
//	Tick(now)                                      // several times a second: expiry, end of the adopt window
//
// A Lease call is Adopt (if the call shows leases), Hold and Want. Then the call waits until Ready has grants for
// its rank or its time is over, and ends with Want of 0. Ready's grants are for the call that waits for that rank; a
// grant that no call takes expires by itself.
//
// Group commit: when Pending() is not 0, and 100 ms or 4,096 acknowledgements have gone by, write the records of
// Flush(100) in one fenced transaction, and repeat this until Flush returns none; then answer the calls that waited.
// Records hold whole states: a record may be written twice. Keep the order of Flush.
//
// Epochs: Ready().Needed names an epoch that a rank asks for and that was not begun: Begin it, or ignore it if the
// job has no such epoch. Ready().Done names an epoch of which every owned number is acknowledged. The ledger forgets
// an epoch, and deletes its records, when all ranks have gone on to a later one.
//
// # Which job gets a drive
//
// A drive runs at most as many leases as it has streams. Jobs that wait for the same drive take turns by start-time
// fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996) over rows, by their weights: over any time in which two jobs both
// wait for a drive, their grants on it, divided by their weights, differ by at most one split of each. A job that
// waits for nothing has no turn. A job runs at most Drives drives at once: its running drives go on, then the drive
// with the most rows left joins. A split on several drives goes to the one with the most free streams. In the order
// Deterministic, a rank is granted its numbers strictly in ascending order.
//
// Two rules keep ranks in lock step from waiting for each other for ever. A rank that holds no lease may start a
// drive above the bound when no running drive has work for the rank. A lease whose rank reports that its queue is
// full (Progress.Blocked) for Config.Patience loses its stream to a rank that waits for that drive. A mini-batch
// that has been fetched needs no drive: a rank that reports it (Progress.Fetched) frees the stream, and keeps the
// lease when the drive dies.
//
// # Workers without data
//
// A worker of reach Any holds no partition and can make every split. The ledger keeps no list of splits for it: its
// next split is the share's next one, so that a hundred such workers over a million splits need no additional
// memory. Holders come first. A worker of reach Any is granted
//
//   - splits of partitions that can be read and that no holder can make (orphans), always;
//   - other splits only when no holder has a free stream, on at most as many workers at once as AllowWorkers allows,
//     because T is more than the holders sustain.
//
// A partition can be read while a drive that holds it, or an agent that was given it by URL (reach Source), lives, even
// while the drive drains or the job excludes it (Job.Makers). What a worker has in files of its own machine
// (Drive.Partitions) that worker alone can read: when no drive and no store has such a partition any more, the worker
// makes its splits, even if the worker is beyond the allowance.
//
// A worker that serves one rank alone (Drive.Serves), which is the trainer's own CPUs, is granted splits of that
// rank only. ShareSplits divides the splits of a rank between these workers and all others, by two counters of
// trainmgr/offload. The workers that serve every rank are assigned to ranks by partitioned round robin
// (allocation.Assign), so that a launcher talks to few workers and a worker to few launchers. Each job has an order
// of its own among the workers: with an allowance of n it takes the first n.
//
// A worker of reach Any that fails three leases in a row is set aside, for ten seconds at first and up to five
// minutes; the partitions are not at fault. A report of bad data from it alone does not fail the job: another worker
// or a holder has to report bad data too, or the same worker three times for the same split.
//
// # Durability
//
// Per job there is a "ranks" record (each rank's session and epoch). Per epoch there is a mark (every split before it
// is delivered), and one record for every 1,024 splits at or above the mark: a bitmap of the delivered splits, and the
// delivered numbers of the unfinished ones (package format has the bytes). So an acknowledgement that was answered is
// in the records, wherever in a split it is, and no later leader grants its numbers. Numbers that were acknowledged and
// not answered may be granted again. The launcher, which has delivered them already, drops their mini-batches and
// acknowledges them again, or it attaches with its token.
//
// The fragments of one mini-batch can be in the records of two chunks, or on both sides of the mark, and a leader can
// die when only one of the records is written. EndRestore takes such a mini-batch back: its acknowledgement was not
// answered. The two records are not written in one transaction instead, because neighbouring chunks share a mini-batch
// nearly always, and a rank that goes back would need all chunks in one. A mark that goes back is written after the
// chunks that it had passed, whose records had been deleted.
//
// # Concurrency
//
// A Ledger has one owner. An owner that shares the Ledger among goroutines guards it by a lock.
//
// # Errors
//
// [ErrUnknown] for a job, epoch, rank or drive that the ledger does not have, [ErrSession] for a session that was
// fenced off, [ErrArgument] for a call that can never succeed, [format.ErrRecord] for stored bytes that are not whole.
// [*InvariantError] for a fault of the ledger itself: see Broken.
//
// # Debugging
//
// Status describes in words the state of every rank, and why the rank waits. The scripts in testdata show what
// events lead to which effects; write one to reproduce a question.
package ledger
