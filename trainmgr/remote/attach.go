package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote/profile"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// Defaults of AttachOptions.
const (
	DefaultCredits  = 4 // for mini-batches below 2 MiB
	DefaultPieces   = 64
	DefaultDeadline = 15 * time.Second
	DefaultAckDelay = 50 * time.Millisecond
	DefaultAcks     = 1024
)

// refusedTime is how long nodes may refuse a split, because they do not hold its partition or the partition has
// changed, before the data counts as at fault. The nodes' heartbeats tell the control plane within seconds that a
// partition has moved.
const refusedTime = 5 * time.Second

// AttachOptions select a consumer's rank and how the consumer takes mini-batches. The zero value is rank 0, which
// continues from the state in the ledger.
type AttachOptions struct {
	Rank uint32
	// Token is the token that Checkpoint returned and the trainer kept with its model. The rank goes back, or forward,
	// to the token. Nil means that the rank continues from the state in the ledger.
	Token []byte
	// Run names the training run of the rank, at most 256 bytes. All ranks of a run give the same name, and no two runs
	// have the same name. Empty: the ranks that attach by one Client are a run. A launcher whose ranks are separate
	// processes makes a name in rank 0 and hands it to the others.
	Run string
	// Resume makes this run continue where another run stopped, without the mini-batches that the other run
	// acknowledged. Without Resume and without a Token, Attach returns a *PartlyConsumedError in this case.
	Resume bool

	// QueueBytes bounds the bytes in the input queue and on their way to it; 0 means trainmgr.DefaultQueueBytes.
	QueueBytes int64
	// Credits is how many requests of one piece are under way or answered and not taken; 0 means as many as make 8 MiB,
	// from 2 to DefaultCredits.
	Credits int
	// Pieces is the most pieces at once; 0 means DefaultPieces. The control plane decides how many drives run.
	Pieces   int
	Deadline time.Duration // for one answer of a node, before the rank asks at another address; 0 means DefaultDeadline
	AckDelay time.Duration // the longest that an acknowledgement waits for others; 0 means DefaultAckDelay
	Acks     int           // as many acknowledgements are sent without delay; 0 means DefaultAcks

	// RowsPerSecond is this rank's T if it is known. Otherwise Step measures T, if it is given, on dummy mini-batches
	// before the first real mini-batch. The control plane allocates drives by T.
	RowsPerSecond float64
	Step          *trainmgr.Step
	Throughput    trainmgr.ThroughputOptions
	// Profile measures FastFlow's metrics over the first mini-batches of the job, if a policy decides the share of the
	// rank's own CPUs, the job has mini-batches enough, and it takes several times as long. The rank's own worker must
	// be in this process, whose CPU time is measured, and the trainer must iterate with Job.MiniBatches of this package.
	Profile bool
	// Model and Store keep the profile for the next job, as those of trainmgr.Offload. If the store has the metrics of
	// the same model, pipeline and workers, nothing is measured, T included, and a job of any length uses them.
	Model string
	Store trainmgr.MetricStore
	// OwnReads describes from where the rank's own worker reads partitions, for example "files". It is a part of the
	// pipeline's key.
	OwnReads string

	Recording trainmgr.Recording // Moments in which the trainer starves are recorded.

	refused           time.Duration // 0 means refusedTime
	profilesShortJobs bool          // for tests: a job that has mini-batches enough is profiled, however short it is
}

func (o AttachOptions) withDefaults() (AttachOptions, error) {
	for _, option := range []struct {
		name         string
		value        *int
		defaultValue int
	}{{"credits", &o.Credits, 0}, {"pieces", &o.Pieces, DefaultPieces}, {"acks", &o.Acks, DefaultAcks}} {
		if *option.value == 0 {
			*option.value = option.defaultValue
		}
		if *option.value < 0 {
			return o, fmt.Errorf("%w: %d %s", ErrOptions, *option.value, option.name)
		}
	}
	for _, option := range []struct {
		name         string
		value        *time.Duration
		defaultValue time.Duration
	}{{"deadline", &o.Deadline, DefaultDeadline}, {"delay of acknowledgements", &o.AckDelay, DefaultAckDelay}} {
		if *option.value == 0 {
			*option.value = option.defaultValue
		}
		if *option.value < 0 {
			return o, fmt.Errorf("%w: a %s of %v", ErrOptions, option.name, *option.value)
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

// Attach makes the caller the only consumer of a rank. The consumer that was attached before gets ErrFenced. id is a
// job's id or name. Attach waits while the job is being prepared. It returns ErrEnded if the job is done. If another
// run has acknowledged mini-batches of the rank it returns a *PartlyConsumedError, unless the options have a Token or
// Resume.
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
		o.Run = c.defaultRun
	}
	r := &rank{
		client: c, options: o, rowsPerSecond: o.RowsPerSecond, pool: newBuffers(2 * o.QueueBytes),
		trainer: profile.Trainer{RowsPerSecond: o.RowsPerSecond}, nodes: map[string]*node{},
	}
	resp, err := r.attach(ctx, id, o.Token, o.Resume)
	if err != nil {
		return fail(err)
	}
	first, err := r.epochOf(resp)
	if err != nil {
		return fail(err)
	}
	order, err := dataset.ParseOrder(resp.Job.Spec.GetOrder())
	if err != nil {
		return fail(err)
	}
	r.firstEpoch, r.epoch = first.Epoch, first.Epoch
	r.start(first.attachment(resp.Session))
	job, err := trainmgr.NewJob(ctx, r, trainmgr.JobOptions{
		Digest: r.digest, Schema: r.schema, Epochs: int(min(max(resp.Job.Spec.GetEpochs(), 1), math.MaxInt32)),
		Order:      order,
		QueueBytes: o.QueueBytes, Recording: o.Recording, Logger: c.options.Logger,
	})
	if o.Profile && profile.PolicyDecides(resp.Job.Spec) {
		r.stored.find(r, resp.ProfileKeys)
		if t := r.stored.trainer(); r.rowsPerSecond == 0 && t.RowsPerSecond > 0 {
			r.rowsPerSecond, r.trainer = t.RowsPerSecond, t
		}
	}
	if err == nil && r.rowsPerSecond == 0 && o.Step != nil {
		err = r.measureThroughput(ctx, resp.MeanLength)
	}
	if err != nil {
		r.stop()
		return fail(err)
	}
	if o.Profile {
		r.startProfile(resp.Job.Spec)
	}
	c.options.Logger.Info("attached", "job", r.id, "rank", o.Rank, "epoch", resp.Epoch,
		"t_rows_per_second", r.rowsPerSecond)
	return &Job{Job: job, rank: r}, nil
}

// measureThroughput measures T on the launcher's step.
func (r *rank) measureThroughput(ctx context.Context, meanLength map[string]float64) error {
	dummy, err := trainmgr.Dummy(r.schema, r.batch, meanLength)
	if err != nil {
		return err
	}
	rows, cpu := int64(0), time.Duration(0)
	step := measuredStep(*r.options.Step, &rows, &cpu)
	if r.rowsPerSecond, err = trainmgr.Throughput(ctx, dummy, r.options.Throughput, step); err != nil {
		return err
	}
	r.trainer = profile.Trainer{
		RowsPerSecond: r.rowsPerSecond, CPUPerRow: cpu.Seconds() / float64(max(rows, 1)), CPUKnown: processors.Time() > 0,
	}
	return nil
}

// attach calls Attach and checks the part of the answer that is the same for every epoch.
func (r *rank) attach(ctx context.Context, id string, token []byte, resume bool) (*apiv1.AttachResponse, error) {
	var resp *apiv1.AttachResponse
	for waits := true; waits; {
		var err error
		resp, err = invoke(ctx, r.client, attachTime, controlClient.Attach, &apiv1.AttachRequest{
			Id: id, Rank: r.options.Rank, Token: token, SaysDone: true, Run: r.options.Run, Resume: resume,
			Joins: true,
		})
		waits = waitsLong(err)
		if err != nil && (!waits || ctx.Err() != nil) {
			return nil, err
		}
		if waits {
			r.client.options.Logger.Info("the job cannot be attached to yet", "job", id, "why", err.Error())
		}
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
	digest := dataset.Digest(resp.Job.Digest)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.schema == nil: // fields that other goroutines read without a lock from now on
		r.schema, r.id, r.digest = &schema, resp.Job.Id, digest
	case r.id != resp.Job.Id || r.digest != digest && !resp.Job.Spec.GetFollow():
		return nil, fmt.Errorf("the answer is about job %s with digest %v, want job %s with %v", resp.Job.Id, digest, r.id,
			r.digest)
	case !r.schema.Equal(&schema):
		return nil, errors.New("the job's schema has changed")
	}
	r.status = resp.Job
	return resp, nil
}

// waitsLong reports whether an error says that the job's selection is being made, for however many rows, or that other
// jobs hold the room that the job needs.
func waitsLong(err error) bool {
	return connect.CodeOf(err) == connect.CodeUnavailable &&
		(strings.Contains(err.Error(), apiv1.SelectingRows) || strings.Contains(err.Error(), apiv1.RoomHeldBy))
}

// attachTime is how long one member gets to answer Attach, which may wait for the job's preparation.
const attachTime = 30 * time.Second

// attachedEpoch is an epoch of the answer of Attach, with what the ledger knows of it.
type attachedEpoch struct {
	*trainmgr.Epoch
	durable *dataset.Progress
}

// attachment returns what the rank's machine keeps of the epoch.
func (e *attachedEpoch) attachment(session []byte) protocol.Attachment {
	return protocol.Attachment{Session: session, Epoch: protocol.Epoch{
		Number: e.Number, Plan: e.Plan, Owned: e.Owned, Durable: e.durable,
	}}
}

// epochOf makes an epoch of the answer of Attach.
func (r *rank) epochOf(resp *apiv1.AttachResponse) (*attachedEpoch, error) {
	manifest, err := dataset.ReadManifest(resp.Manifest)
	if err != nil {
		return nil, err
	}
	o, err := apiv1.ReadPlan(resp.Job.Spec.GetPlan())
	if err != nil {
		return nil, err
	}
	o.Epoch = resp.Epoch
	if o.Batch == 0 { // the job takes the batch of its pipeline
		spec, err := pipeline.Parse(resp.Job.Spec.GetPipeline())
		if err != nil {
			return nil, fmt.Errorf("the job's pipeline: %w", err)
		}
		o.Batch = spec.Batch
	}
	passing := resp.Passing
	if len(passing) == 0 {
		passing = nil // the pipeline has no filter
	}
	plan, err := dataset.NewSelectedPlan(manifest, passing, o)
	if err != nil {
		return nil, err
	}
	if r.manifest == nil {
		r.manifest = manifest
	}
	e := &trainmgr.Epoch{Number: resp.Epoch, Plan: plan, Owned: []dataset.Range{}, LeftOutRows: resp.Job.LeftOutRows}
	end := uint64(0)
	for _, numbers := range resp.Owned {
		if numbers.From < end || numbers.To <= numbers.From || numbers.To > plan.MiniBatches() {
			return nil, fmt.Errorf("the rank owns [%d, %d) after %d, of %d mini-batches", numbers.From, numbers.To, end,
				plan.MiniBatches())
		}
		e.Owned = append(e.Owned, dataset.Range{From: numbers.From, To: numbers.To})
		end = numbers.To
	}
	digest := dataset.Digest(resp.Job.Digest) // That of the epoch's edition.
	token := dataset.Token{Job: digest, Epoch: resp.Epoch}
	if len(resp.Token) > 0 {
		if token, err = ReadToken(resp.Token); err != nil {
			return nil, err
		}
	}
	if token.Epoch != resp.Epoch {
		return nil, fmt.Errorf("%w: of epoch %d, the rank is in %d", dataset.ErrToken, token.Epoch, resp.Epoch)
	}
	if e.Progress, err = dataset.Resume(token, digest, plan.MiniBatches()); err != nil {
		return nil, err
	}
	durable, err := dataset.Resume(token, digest, plan.MiniBatches())
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batch = plan.Options().Batch
	return &attachedEpoch{Epoch: e, durable: durable}, nil
}

// ID returns the job's id, which names it in every call.
func (j *Job) ID() string { return j.rank.id }

// Manifest returns the partitions that the job began with.
func (j *Job) Manifest() *dataset.Manifest { return j.rank.manifest }

// Status returns the job as the control plane described it when this rank attached.
func (j *Job) Status() *apiv1.JobStatus {
	j.rank.mu.Lock()
	defer j.rank.mu.Unlock()
	return j.rank.status
}

// Profile describes the rank's profile; see AttachOptions.Profile.
func (j *Job) Profile() ProfileStatus { return j.rank.profiler.Status() }

// Rows returns how many rows this rank's epoch has still to deliver.
func (j *Job) Rows() int64 {
	j.rank.mu.Lock()
	defer j.rank.mu.Unlock()
	return j.rank.machine.RowsLeft()
}

// MiniBatches iterates over the mini-batches that the rank has not acknowledged, epoch after epoch; see
// trainmgr.Job. When it ends without an error, or is left early while the control plane answers within seconds,
// every acknowledgement is durable.
func (j *Job) MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error] {
	if j.rank.profiler == nil {
		return j.Job.MiniBatches(ctx)
	}
	return func(yield func(*tensor.MiniBatch, error) bool) {
		for mb, err := range j.Job.MiniBatches(ctx) {
			if err == nil {
				j.rank.noteTaken(mb)
			}
			if !yield(mb, err) {
				return
			}
		}
	}
}

// Flush waits until every acknowledgement so far is durable.
func (j *Job) Flush(ctx context.Context) error { return j.rank.flush(ctx) }

// Token returns the token of the mini-batches that this rank has acknowledged, at once and from memory. The token is
// not sealed by the control plane: it serves as JobSpec.Resume of another job over the same data. Attach takes the
// token of Checkpoint.
func (j *Job) Token() dataset.Token { return j.Job.Checkpoint() }

// Checkpoint makes this rank's acknowledgements durable and returns the rank's token, which the control plane has
// sealed. Attach goes on from the token. Checkpoint waits while the control plane is away.
func (j *Job) Checkpoint(ctx context.Context) ([]byte, error) {
	token, err := j.rank.checkpoint(ctx, j.Job.Checkpoint)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of job %s, rank %d: %w", j.rank.id, j.rank.options.Rank, err)
	}
	return token, nil
}

// Close makes acknowledgements durable, if the control plane answers within seconds, and ends the consumer's
// goroutines. The job goes on for other ranks, and for the next consumer that attaches as this rank. After an iteration
// that ended without an error, Close tells the control plane that this rank has finished. Call it when the last
// checkpoint is safe: a job of which every rank has finished has ended, and no consumer can attach to it any more.
func (j *Job) Close() error { return j.Job.Close() }
