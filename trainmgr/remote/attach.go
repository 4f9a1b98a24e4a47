package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// Defaults of AttachOptions.
const (
	DefaultCredits  = 4 // of mini-batches below 2 MiB
	DefaultPieces   = 64
	DefaultDeadline = 15 * time.Second
	DefaultAckDelay = 50 * time.Millisecond
	DefaultAcks     = 1024
)

// AttachOptions say which rank a consumer is and how it takes mini-batches. The zero value is rank 0, from where the ledger stands.
type AttachOptions struct {
	Rank uint32
	// Token is what Checkpoint returned and the trainer kept with its model: the rank goes back, or forward, to what it
	// says. Nil: to where the ledger stands.
	Token []byte
	// Run names the training run that the rank is one of, at most 256 bytes: all ranks of a run say the same, two runs
	// never do. Empty: the ranks that attach by one Client are a run. A launcher whose ranks are processes of their own
	// makes a name in rank 0 and hands it to the others.
	Run string
	// Resume says that this run wants to go on where another one stopped, without the mini-batches that it
	// acknowledged. Else that is a *PartlyConsumedError, unless there is a Token.
	Resume bool

	QueueBytes int64         // bound of the input queue and of what is on its way to it; 0 means trainmgr.DefaultQueueBytes
	Credits    int           // requests under way, and answers waiting, of one piece; 0 means as many as make 8 MiB, from 2 to DefaultCredits
	Pieces     int           // most pieces at once; 0 means DefaultPieces. The control plane decides how many drives run
	Deadline   time.Duration // for one mini-batch from a node, before another way is tried; 0 means DefaultDeadline
	AckDelay   time.Duration // the longest that an acknowledgement waits for company; 0 means DefaultAckDelay
	Acks       int           // acknowledgements that wait for no more company; 0 means DefaultAcks

	// RowsPerSecond is this rank's T if it is known. Else Step measures it, when it is given, on dummy mini-batches
	// before the first real one. The control plane sizes the job by it.
	RowsPerSecond float64
	Step          *trainmgr.Step
	Throughput    trainmgr.ThroughputOptions

	Recording trainmgr.Recording // of moments in which the trainer starves

	refused time.Duration // 0 means refusedTime
}

func (o AttachOptions) withDefaults() (AttachOptions, error) {
	for _, d := range []struct {
		name  string
		value *int
		want  int
	}{{"credits", &o.Credits, 0}, {"pieces", &o.Pieces, DefaultPieces}, {"acks", &o.Acks, DefaultAcks}} {
		if *d.value == 0 {
			*d.value = d.want
		}
		if *d.value < 0 {
			return o, fmt.Errorf("%w: %d %s", ErrOptions, *d.value, d.name)
		}
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		want  time.Duration
	}{{"deadline", &o.Deadline, DefaultDeadline}, {"delay of acknowledgements", &o.AckDelay, DefaultAckDelay}} {
		if *d.value == 0 {
			*d.value = d.want
		}
		if *d.value < 0 {
			return o, fmt.Errorf("%w: a %s of %v", ErrOptions, d.name, *d.value)
		}
	}
	if o.refused == 0 {
		o.refused = refusedTime
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = trainmgr.DefaultQueueBytes
	}
	if o.QueueBytes < 0 || !(o.RowsPerSecond >= 0) || math.IsInf(o.RowsPerSecond, 0) {
		return o, fmt.Errorf("%w: a queue of %d bytes, T of %v rows/s", ErrOptions, o.QueueBytes, o.RowsPerSecond)
	}
	return o, nil
}

// Job is one rank's consumer of a job.
type Job struct {
	*trainmgr.Job
	rank *rank
}

// Attach makes the caller a rank's only consumer: one that was attached before gets ErrFenced. id is a job's id or name. While the job
// is being prepared it waits. A rank of which another run has acknowledged mini-batches is a *PartlyConsumedError, unless there is a token or Resume says so; a
// job that is done is ErrEnded.
func (c *Client) Attach(ctx context.Context, id string, o AttachOptions) (*Job, error) {
	fail := func(err error) (*Job, error) {
		return nil, fmt.Errorf("attach to job %s as rank %d: %w", id, o.Rank, err)
	}
	o, err := o.withDefaults()
	if err != nil {
		return fail(err)
	}
	if len(o.Token) > 0 {
		if _, err := ReadToken(o.Token); err != nil {
			return fail(err)
		}
	}
	if o.Run == "" {
		o.Run = c.run
	}
	r := &rank{client: c, o: o, t: o.RowsPerSecond, pool: newBuffers(2 * o.QueueBytes), nodes: map[string]*node{}}
	resp, err := r.attach(ctx, id, o.Token, o.Resume)
	if err != nil {
		return fail(err)
	}
	if r.first, err = r.epochOf(resp); err != nil {
		return fail(err)
	}
	order, err := dataset.ParseOrder(resp.Job.Spec.GetOrder())
	if err != nil {
		return fail(err)
	}
	r.acks = startAcks(c, r.id, resp.Session, o.Acks, o.AckDelay, r.landed)
	job, err := trainmgr.NewJob(ctx, r, trainmgr.JobOptions{
		Digest: r.digest, Schema: r.schema, Epochs: int(min(max(resp.Job.Spec.GetEpochs(), 1), math.MaxInt32)), Order: order, QueueBytes: o.QueueBytes, Recording: o.Recording, Logger: c.o.Logger,
	})
	if err == nil && r.t == 0 && o.Step != nil {
		err = r.measure(ctx, resp.MeanLength)
	}
	if err != nil {
		r.acks.close()
		return fail(err)
	}
	c.o.Logger.Info("attached", "job", r.id, "rank", o.Rank, "epoch", resp.Epoch, "t_rows_per_second", r.t)
	return &Job{Job: job, rank: r}, nil
}

// measure times the launcher's step.
func (r *rank) measure(ctx context.Context, meanLength map[string]float64) error {
	dummy, err := trainmgr.Dummy(r.schema, r.batch, meanLength)
	if err != nil {
		return err
	}
	r.t, err = trainmgr.Throughput(ctx, dummy, r.o.Throughput, *r.o.Step)
	return err
}

// attach calls Attach and checks what is the same for every epoch.
func (r *rank) attach(ctx context.Context, id string, token []byte, resume bool) (*apiv1.AttachResponse, error) {
	resp, err := call(ctx, r.client, 30*time.Second, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AttachResponse, error) {
		return m.Attach(ctx, &apiv1.AttachRequest{Id: id, Rank: r.o.Rank, Token: token, SaysDone: true, Run: r.o.Run, Resume: resume})
	})
	if err != nil {
		return nil, err
	}
	if resp.Job == nil || resp.Job.Spec == nil || len(resp.Session) == 0 || len(resp.Job.Digest) != len(r.digest) {
		return nil, errors.New("the control plane's answer lacks job, digest or session")
	}
	var schema tensor.Schema
	if err := json.Unmarshal(resp.TensorSchema, &schema); err != nil {
		return nil, fmt.Errorf("tensor schema: %w", err)
	}
	if err := schema.Validate(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.schema == nil {
		r.schema = &schema
	} else if !r.schema.Equal(&schema) {
		return nil, errors.New("the job's schema has changed")
	}
	r.id, r.session, r.status = resp.Job.Id, resp.Session, resp.Job
	r.digest = dataset.Digest(resp.Job.Digest)
	return resp, nil
}

// epochOf makes an epoch of what Attach answered.
func (r *rank) epochOf(resp *apiv1.AttachResponse) (*trainmgr.Epoch, error) {
	manifest, err := dataset.ReadManifest(resp.Manifest)
	if err != nil {
		return nil, err
	}
	o, err := planOptions(resp.Job.Spec.GetPlan(), resp.Epoch)
	if err != nil {
		return nil, err
	}
	if o.Batch == 0 { // the job left it to the pipeline
		spec, err := pipeline.Parse(resp.Job.Spec.GetPipeline())
		if err != nil {
			return nil, fmt.Errorf("the job's pipeline: %w", err)
		}
		o.Batch = spec.Batch
	}
	plan, err := dataset.NewPlan(manifest, o)
	if err != nil {
		return nil, err
	}
	e := &trainmgr.Epoch{Number: resp.Epoch, Plan: plan, Owned: []dataset.Range{}}
	at := uint64(0)
	for _, n := range resp.Owned {
		if n.From < at || n.To <= n.From || n.To > plan.MiniBatches() {
			return nil, fmt.Errorf("the rank owns [%d, %d) after %d, of %d mini-batches", n.From, n.To, at, plan.MiniBatches())
		}
		e.Owned = append(e.Owned, dataset.Range{From: n.From, To: n.To})
		at = n.To
	}
	token := dataset.Token{Job: r.digest, Epoch: resp.Epoch}
	if len(resp.Token) > 0 {
		if token, err = ReadToken(resp.Token); err != nil {
			return nil, err
		}
	}
	if token.Epoch != resp.Epoch {
		return nil, fmt.Errorf("%w: of epoch %d, the rank is in %d", dataset.ErrToken, token.Epoch, resp.Epoch)
	}
	if e.Progress, err = dataset.Resume(token, r.digest, plan.MiniBatches()); err != nil {
		return nil, err
	}
	durable, err := dataset.Resume(token, r.digest, plan.MiniBatches())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durable, r.epoch, r.batch = durable, e, plan.Options().Batch
	return e, nil
}

// planOptions reads a job's plan.
func planOptions(p *apiv1.PlanOptions, epoch uint64) (dataset.Options, error) {
	o := dataset.Options{Seed: p.GetSeed(), Epoch: epoch}
	for _, f := range []struct {
		name string
		have int64
		into *int
	}{{"batch", p.GetBatch(), &o.Batch}, {"split_batches", p.GetSplitBatches(), &o.SplitBatches}, {"window", p.GetWindow(), &o.Window}} {
		if f.have < 0 || f.have > math.MaxInt32 {
			return o, fmt.Errorf("plan: %s of %d", f.name, f.have)
		}
		*f.into = int(f.have)
	}
	if t := p.GetTail(); t != "" {
		if err := o.Tail.UnmarshalText([]byte(t)); err != nil {
			return o, err
		}
	}
	if s := p.GetShuffle(); s != "" {
		if err := o.Shuffle.UnmarshalText([]byte(s)); err != nil {
			return o, err
		}
	}
	return o, nil
}

// ID names the job in every call.
func (j *Job) ID() string { return j.rank.id }

// Status returns the job as the control plane described it when this rank attached.
func (j *Job) Status() *apiv1.JobStatus {
	j.rank.mu.Lock()
	defer j.rank.mu.Unlock()
	return j.rank.status
}

// Rows returns how many rows this rank's epoch has still to deliver.
func (j *Job) Rows() int64 {
	j.rank.mu.Lock()
	defer j.rank.mu.Unlock()
	return j.rank.rowsLeft()
}

// MiniBatches iterates over what the rank still owes, epoch after epoch; see trainmgr.Job. When it ends without an
// error, or is left early while the control plane answers within seconds, every acknowledgement is durable.
func (j *Job) MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	return j.Job.MiniBatches(ctx)
}

// Flush waits until every acknowledgement so far is durable.
func (j *Job) Flush(ctx context.Context) error { return j.rank.acks.flush(ctx) }

// Token returns what this rank has acknowledged, at once and from memory, without the control plane's seal: it serves as JobSpec.Resume of
// another job over the same data; Attach wants Checkpoint's.
func (j *Job) Token() dataset.Token { return j.Job.Checkpoint() }

// Checkpoint makes what this rank has acknowledged durable and returns its token, which the control plane has sealed:
// Attach, with it, goes on from here. While the control plane is away it waits.
func (j *Job) Checkpoint(ctx context.Context) ([]byte, error) {
	token, err := j.rank.checkpoint(ctx, j.Job.Checkpoint)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of job %s, rank %d: %w", j.rank.id, j.rank.o.Rank, err)
	}
	return token, nil
}

// Close makes acknowledgements durable, as far as the control plane answers within seconds, and ends the job's goroutines. The job goes on for other
// ranks, and for whoever attaches as this one. After an iteration that ended without an error it tells the control plane that this rank is through: call
// it when the last checkpoint is safe, since a job whose ranks are all through has ended, and cannot be attached to any more.
func (j *Job) Close() error { return j.Job.Close() }
