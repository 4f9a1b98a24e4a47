// Package remote is a launcher's side of the service: jobs that a control plane runs over storage nodes.
//
// # Overview
//
//	client, err := remote.Dial(remote.Options{Control: []string{"https://control-0:7460", "https://control-1:7460"}})
//	...
//	defer client.Close()
//	status, err := client.Submit(ctx, &apiv1.JobSpec{Name: "ads", Pipeline: yaml, Ranks: 8})
//	job, err := client.Attach(ctx, status.Id, remote.AttachOptions{Rank: rank, Token: token})
//	defer job.Close()
//	for mb, err := range job.MiniBatches(ctx) {
//		...
//		token, err := job.Checkpoint(ctx) // keep it with the model
//	}
//
// A [Job] is a trainmgr.Job whose pieces are leases of the control plane. A lease names mini-batches, a node and a
// drive of the node, and the job fetches the mini-batches from the node, one HTTP GET each. No mini-batch passes
// through the leader: while the leader is away, the trainer goes on with what the nodes make under the leases that it
// holds and with what the queue holds.
//
// # The parts
//
//	Client            calls the control plane, and goes on asking as protocol.Attempts says
//	protocol.Machine  decides what one rank says to the control plane and to nodes, and when. It is pure
//	rank              is the trainmgr.Source of one rank: it owns its machine and carries its effects out
//	leases            are the pieces of one delivery
//	piece             is one lease
//	stream            fetches the mini-batches of one lease, several at once, and yields them in order
//	node              is one storage node: its addresses, sockets of this machine first
//	profile.Profiler  measures FastFlow's metrics over the first mini-batches, for the share of the rank's own CPUs
//
// Every event goes through rank.tell, which feeds the machine under the rank's lock and begins what follows
// (effects.go): calls of the control plane in goroutines, pieces that are cancelled, the timer. Beside the machine,
// this package decides which mini-batch of a lease is fetched next, as credits and the queue's room allow (stream), and
// whether addresses or identities are wrong before the first contact (Client.misconfigured).
//
// # Exactly once
//
// A mini-batch is known by its number. If it comes twice, because a lease went to another node meanwhile, the job drops
// the second. Acknowledgements travel to the ledger in groups, at most [AttachOptions].AckDelay later, and are durable
// when Checkpoint or Close returns. The trainer's token holds over what the ledger knows: Attach with a token takes the
// rank to what the token says.
//
// # Runs
//
// A job that is submitted again while it runs is the same job, and its acknowledged mini-batches never come again. A
// launcher that was interrupted and is started again would then train on the rest alone, without notice. Therefore
// Attach names the training run of the rank (AttachOptions.Run; the ranks that attach by one Client are a run unless
// they name another). Attach returns a [*PartlyConsumedError] if another run has acknowledged mini-batches of the rank,
// unless the caller brings a token or sets AttachOptions.Resume. A rank of the same run may attach late, and again. An
// iteration that has nothing to deliver returns trainmgr.ErrNothingLeft.
//
// The last mini-batch of a loop that ends early is not acknowledged: call Acknowledge before the end if the trainer has
// made its step. The acknowledgements before it are durable when the loop has ended, by break, return or panic, and
// when Close returns. After os.Exit inside the loop, or a kill, the acknowledgements of the last AckDelay may be lost,
// and their mini-batches come again.
//
// # Concurrency
//
// A Client may be used from any goroutine. A Job's iterator has one user; its other methods may be called from any
// goroutine. Close returns when every goroutine has ended.
//
// # Errors
//
// A [*PartlyConsumedError] says that another run has acknowledged mini-batches of the rank, [ErrUnreachable] that no
// member of the control plane has led for Options.Patience, and [ErrFenced] that another consumer has attached as the
// same rank. [ErrData] says that a partition, a row or the program is at fault, and ends the job for every rank.
// [ErrEnded] says that the job was cancelled or has failed, [ErrNoJob] that there is no job of the name.
// dataset.ErrToken and dataset.ErrOtherJob refuse a token. A node that fails is not an error: the rank gives its leases
// back, and their mini-batches come from another node, or later.
//
// # Debugging
//
// Options.Logger logs grants, refusals, retries and changes of the leader. Job.Report says what held the trainer back.
package remote
