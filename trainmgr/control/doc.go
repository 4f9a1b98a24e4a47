// Package control is the control plane: DPP's master and PreSto's train manager for many storage nodes and many jobs.
//
// # Overview
//
// [Start] starts one member: its etcd (package store), its place in the election, and the Connect service
// millrace.v1.Control. One member leads; the others answer failed_precondition and name it. The leader owns
//
//	fleet      the nodes that beat, their drives and partitions (package fleet, pure)
//	ledger     which mini-batches are delivered, which are out on lease (package ledger, pure)
//	jobs       one goroutine each: prepare on the nodes, measure P, allocate, scale (package autoscale, pure), epochs, end
//	journal    group commit of what the ledger changed (package store)
//
// What a launcher or a node does becomes an event of a pure machine under one lock; what the machine answers is carried
// out by the leader. The data plane never touches it: launchers pull mini-batches from the nodes.
//
// # What is stored
//
// Below the store's prefix ("/millrace/v1/"), each write guarded by the leader's fence:
//
//	format                   the layout
//	fences                   where fences begin: seconds of the first term, times 2^20
//	key                      32 random bytes: the cluster's key, under which checkpoint tokens are tagged
//	node/NAME                a node's URLs, drives and whether an operator drained it; never its partitions
//	job/ID/spec              what was submitted, at most 256 KiB; never changed
//	job/ID/state             where the job stands; at most once a second
//	job/ID/data/G/NNNN       manifest and columns of generation G, compressed, in pieces
//	job/ID/decisions         the autoscaler's last ones
//	job/ID/ranks, job/ID/eE/mark, job/ID/eE/cNNNNNN     the ledger's records
//
// # Failover
//
// A leader whose lease in etcd runs out is replaced; one that died on a host that lives, and so refuses connections, is
// deposed by the others after two fifths of that time. A new leader loads jobs and ledger, waits two beats in which
// nodes report and launchers present what they hold, and goes on. What the old one still writes is refused by the
// fence. A job in the middle of being prepared is prepared again.
//
// # Members
//
// Members of the embedded etcd are added without a vote, which the leader gives them when they have caught up
// (Server.promote): one that never comes costs nobody the majority. A member that joins asks another for the list.
// docs/operations.md has the steps.
//
// # Leases and lost answers
//
// A grant is said with every answer to its rank until the rank names the lease: what was lost on its way, or was read
// by an iteration that has ended since, comes with the next call. A Lease call that is given up gives back what had
// come for it.
//
// # Tickets
//
// Every grant carries a ticket that the leader signs with a key of its term (package host/ticket), and without which
// the lease's node gives no mini-batch. Leases that are held get another before theirs expires; leases that come back
// are told to their nodes with the answers to heartbeats. Signing is done without the leader's lock.
//
// # Launchers that go
//
// Package presence knows which ranks' launchers are there, by their calls and by the connections on which they called.
// What a detached rank held comes back. A job without an attached rank ends, abandoned, after Options.AbandonAfter or
// what its specification says.
//
// # Generations
//
// A job with follow takes, when all its epochs are delivered, the partitions that match and were not there before as
// a further generation: a manifest of their own, hence a job digest of their own, and as many epochs again, counted on.
//
// # Degradations
//
// A full etcd (alarm NOSPACE) takes no writes: acknowledgements, submissions and checkpoints fail in words; leases are
// granted and extended on, and mini-batches flow as far as the launchers' patience. Once a minute the leader tries to
// make room by erasing ended jobs and compacting.
//
// # Concurrency
//
// A Server's methods may be used from any goroutine. Inside, leader.mu guards everything a leader holds; nothing is
// called over the network and nothing waits for etcd under it. Close ends every goroutine before it returns.
//
// # Errors
//
// Over the wire they have Connect's codes: failed_precondition with the detail NotLeader (ask the member it names),
// aborted (the session was fenced off: attach again), invalid_argument (it can never be right), not_found,
// already_exists, resource_exhausted (limits), permission_denied (roles), unavailable (ask again in a moment).
//
// # Debugging
//
// Logs have job, node, drive, fence. /metrics is Prometheus', /readyz says in words why a member is not ready,
// /debug/pprof is there on loopback when asked for. `curl -d '{}' -H 'Content-Type: application/json'
// URL/millrace.v1.Control/ListJobs` works.
package control
