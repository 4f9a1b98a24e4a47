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
// A [Job] is a trainmgr.Job whose pieces come from the control plane as leases: the leader says which mini-batches to take from
// which drive of which node, and the job pulls them from the node itself, one HTTP GET each. The leader is not on the
// way of the data: while it is away the trainer goes on with what the nodes make and the queue holds.
//
// # The parts
//
//	Client   calls the control plane: tries its members in turn, follows the leader, waits out an election
//	leases   asks for work, extends what is held, reports the queue, gives back
//	stream   one lease's mini-batches from its node, several requests under way, in order
//	node     one storage node: its addresses, the nearest first, and how it has done lately
//	acks     acknowledgements on their way to the ledger, in groups
//
// # Exactly once
//
// A mini-batch is known by its number. One that comes twice, because a lease went to another node meanwhile, is dropped here; what
// the trainer acknowledged is told to the ledger in groups, at most [AttachOptions].AckDelay later, and is durable when Checkpoint or Close
// returns. What the trainer's token says holds over what the ledger knows: Attach with a token takes the rank there.
//
// # Runs
//
// A job that is submitted again while it runs is the same job, and what was acknowledged never comes again. So a
// launcher that was interrupted and is started again would train on the rest, without a word. Therefore Attach says
// which training run the rank belongs to (AttachOptions.Run; the ranks that attach by one Client are a run unless they
// say otherwise), and a rank of which another run has acknowledged mini-batches is a [*PartlyConsumedError], unless the
// caller brings a token, or says AttachOptions.Resume. A rank of the same run may attach late, and again. An iteration
// with nothing to deliver is trainmgr.ErrNothingLeft.
//
// The last mini-batch of a loop that is left early is not acknowledged: say Acknowledge before, if its step was made.
// What was acknowledged before it is durable when the loop has ended, by break, return or panic, and when Close
// returns; not after os.Exit inside the loop or a kill, when the acknowledgements of the last AckDelay may be lost and
// their mini-batches come again.
//
// # Concurrency
//
// A Client may be used from any goroutine. A Job's iterator has one user; its other methods may be called from any
// goroutine. Close returns when every goroutine has ended.
//
// # Errors
//
// A [*PartlyConsumedError] when another run has been at the rank; [ErrUnreachable] when no member of the control plane
// has led for AttachOptions.Patience; [ErrFenced] when another consumer attached as the same rank; [ErrData] when a
// partition, a row or the program is at fault, which ends the job for every rank; [ErrEnded] when the job was cancelled
// or failed; [ErrNoJob] where there is none of the name; dataset.ErrToken and dataset.ErrOtherJob for a bad token. A
// node that fails is not an error: its leases are given back and what they lack comes from elsewhere, or later.
//
// # Debugging
//
// Options.Logger tells of grants, refusals, retries and changes of the leader; Job.Report says what held the trainer back.
package remote
