// Package protocol decides when a rank's launcher calls the control plane and storage nodes, and the content of the
// calls. It is pure: it has no clock (times are arguments), no goroutines, no locks and no network. Package remote owns
// one Machine for each rank, reports events to the Machine, and carries out its effects.
//
// # Overview
//
// Events are methods of a [Machine]. Call [Machine.Ready] after every event, under the same lock: it returns the
// effects, in their order. [Machine.Deadline] says when [Machine.Tick] is due.
//
//	events from the trainer        Acknowledge, Flush, BeginNextEpoch, BeginDelivery, StartPiece, EndDelivery, Leave
//	events of pieces               PieceEnded, EveryBatchCame, FetchFailed, Reached
//	answers of the control plane   LeaseAnswered, Acknowledged, Released, Attached, TokenSealed; *Failed
//	events from the clock          Tick
//
// The files, in the order in which to read them:
//
//	machine.go           Machine           what the parts share: the session, the epoch, the leader's fence
//	acknowledgement.go   acknowledgements  groups of acknowledgements on their way to the ledger
//	delivery.go          delivery          the rhythm of the lease calls of an epoch, and its end
//	lease.go             LeaseRequest      what a call says of the leases that the rank holds, what its answer changes
//	turnover.go          turnover          the way to the next epoch
//	departure.go         departure         the end of the rank
//	checkpoint.go        Checkpoint        whether a sealed token says what the trainer did
//	node.go              Fetch             which address of a node is asked, how often, and after which pause
//	members.go           Members, Attempts which member of the control plane is asked, how often, and after which pause
//	effect.go            Effect
//
// # Leases
//
// While an epoch is delivered, two calls take turns: one asks for leases, and waits at the leader until it grants one;
// the other names the leases that the rank holds, at least twice a second. Every attempt has a new request,
// so that an attempt after an election names the leases of that moment. The leader repeats a grant until a call names
// its lease; the machine ignores a grant of a lease that it holds or held. A lease goes back with the reason: the node
// failed, the data are at fault, or the rank stops. The lease of a piece that has ended is held until the ledger knows
// that its mini-batches were acknowledged.
//
// A lease is of fragments (dataset.Plan): the numbers of a [Grant], and Progress.Due, are fragments' numbers, and
// acknowledgements, tokens and Epoch.Owned are mini-batches' numbers. A mini-batch may have its first and last
// fragments in other splits, under other leases. So a lease is held until the mini-batches at its ends are acknowledged
// too.
//
// # Acknowledgements
//
// They travel in groups, one call at a time. A leader with another fence may lack the acknowledgements that its
// predecessor had in memory alone, so the machine sends all of the epoch's once more. A rank enters its next epoch
// under another session; nothing is sent meanwhile.
//
// # Attempts
//
// A call asks one member after another until its patience is over ([Attempts]). [Members] are shared by all calls of a
// client.
//
// # Concurrency
//
// A Machine has one owner, and so have Members. An owner that shares one among goroutines guards it by a lock.
//
// # Errors
//
// [ErrFenced], [ErrEnded] and [ErrData] are the same values as those of package remote.
//
// # Debugging
//
// The scripts in testdata are incidents: events, and what the machine does. epoch.txt is the first to read. The
// recordings beside them are the same incidents as the control plane, the nodes and the trainer see them. Package
// remote and the launcher in Python play them. Package control/simulation runs days of machines and of the control
// plane, with faults.
package protocol
