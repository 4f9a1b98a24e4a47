// Package control is the control plane: DPP's master and PreSto's train manager for many storage nodes and many jobs.
//
// # Overview
//
// [Start] starts one member: its etcd (package store), its candidacy in the election, and the Connect service
// millrace.v1.Control. One member leads; the others answer failed_precondition and name the leader. The leader owns
//
//	fleet      the nodes that send heartbeats, their drives and partitions (package fleet, pure)
//	machine    the calls of launchers, and behind them which mini-batches are delivered and which are leased (package
//	           ledger), and the phases, ranks, editions and epochs of all jobs (package lifecycle); pure
//	upkeep     what each node is prepared for, and what it has to be given, asked or sent next; pure
//	journal    group commit of what the ledger changed (package store)
//
// A call of a launcher or of a node becomes an event of a pure machine, under one lock. The leader carries out the
// effects under the same lock (leader.settleLocked), so that no call sees an event without its effects. Work that
// takes time is a duty of the job's goroutine (conductor): it waits for nodes to be prepared, measures P, has the job
// reviewed about once a second (package steering, pure), and writes the job's state. A call of a node has a goroutine
// of its own, which passes the answer to package upkeep. Mini-batches do not pass through the control plane: launchers
// pull them from the nodes.
//
// # What is stored
//
// Below the store's prefix ("/millrace/v1/"), each write guarded by the leader's fence:
//
//	format                   the version of the layout
//	fences                   where fences begin: seconds of the first term, times 2^20
//	key                      32 random bytes: the cluster's key, under which checkpoint tokens are tagged
//	node/NAME                a node's URLs, drives and whether an operator drained it; never its partitions
//	job/ID/spec              the submission, at most 256 KiB; never changed
//	job/ID/state             the job's state; written at once when its phase changes, otherwise at most once a second
//	job/ID/data/G/NNNN       manifest and columns of edition G, compressed, in pieces
//	job/ID/decisions         the last decisions of the autoscaler
//	job/ID/ranks, job/ID/eE/mark, job/ID/eE/cNNNNNN     the ledger's records
//
// # Failover
//
// A leader whose lease in etcd runs out is replaced. If a leader's process dies and its host lives, the host refuses
// connections, and the other members depose the leader after two fifths of that time. A new leader loads jobs and
// ledger, waits two heartbeat intervals, in which nodes report and launchers present their leases, and goes on. The
// fence refuses every later write of the old leader. A job that was being prepared or measured is prepared again.
//
// A leader that was replaced and does not know it lacks later jobs and sessions. Before an answer that would end a
// caller's run leaves a member, etcd confirms the member's term (finalAnswers). If it does not, the caller is sent to
// another member.
//
// # Members
//
// A member that is added to the embedded etcd has no vote until it has caught up; then the leader gives it one
// (Server.promote). A member that is added and never started therefore costs no majority. A member that joins asks
// another one for the list. docs/operations.md has the steps.
//
// # Leases and lost answers
//
// Every answer to a rank repeats a grant until the rank names the lease. So the next call repairs an answer that was
// lost, or that was read by an iteration that has ended since. If the caller gives up a Lease call, the grants that
// came for the call are returned to the ledger.
//
// # Tickets
//
// Every grant carries a ticket that the leader signs with a key of its term (package host/ticket). Without the
// ticket the lease's node serves no mini-batch. A held lease gets another ticket before its ticket expires. The
// answers to heartbeats name the leases that came back. Tickets are signed without the leader's lock.
//
// # Launchers that go
//
// Package presence tracks which ranks have a live launcher, from the launchers' calls and the connections of these
// calls. The leases of a detached rank come back. A job without an attached rank ends as abandoned, after
// Options.AbandonAfter or the time that its specification sets.
//
// # Where workers without data read
//
// A worker of any reach gets the sources of an edition's first 1,024 partitions with Prepare. When it is granted a
// split of another partition, it asks for the source by Locate, at most 256 names a call. It asks again when every
// known place of a partition has failed. So no message grows with the number of partitions, and a node that dies or
// copies that move cost one call for each partition that is being read at that time.
//
// # Workers of any reach
//
// A job's placement says which workers may make its splits. Holders of the data come first. The leader prepares and
// enlists workers of any reach for a job only when it needs them: T is more than the holders make
// (allocation.FillGap, and later the autoscaler), some partition can be read and no holder can make it, or the
// placement excludes holders. P of such a worker is measured after the worker was enlisted, on another partition
// each time.
//
// # The pool
//
// With Options.WorkerHook the leader starts and stops workers of any reach through a command of the operator
// (package hook), so that their number is what all jobs together want (package workerpool, pure). A worker is drained
// before it is stopped. The names of these workers begin with "pool-", so that a later leader recognizes them.
//
// # Editions
//
// A job with follow looks for new partitions when all its epochs are delivered. The partitions that match its
// patterns and belong to no earlier edition form a further edition. It has its own manifest and job digest, and as
// many epochs as the first edition, or with follow_once one. Epoch numbers continue across editions.
//
// # Degradations
//
// A full etcd (alarm NOSPACE) takes no writes: acknowledgements, submissions and checkpoints fail with an error that
// says so. Leases are still granted and extended, and mini-batches flow until the launchers' patience ends. Once a
// minute the leader tries to make room: it erases ended jobs and compacts etcd.
//
// # Concurrency
//
// A Server's methods may be used from any goroutine. leader.mu guards the machines and all jobs; a method whose name
// ends in Locked needs it; no call over the network and no write to etcd is waited for under it. Close ends every
// goroutine before it returns.
//
// # Errors
//
// Errors on the wire have Connect's codes: failed_precondition with the detail NotLeader (ask the member that it
// names), aborted (the session was fenced off: attach again), invalid_argument (the call can never succeed), not_found,
// already_exists, resource_exhausted (limits), permission_denied (roles), unavailable (ask again in a moment).
//
// # Debugging
//
// Log lines carry job, node, drive and fence. /metrics is in Prometheus' format, /readyz says why a member is not
// ready, and /debug/pprof is served on loopback when Options.Profile is set. `curl -d '{}' -H 'Content-Type:
// application/json' URL/millrace.v1.Control/ListJobs` works.
package control
