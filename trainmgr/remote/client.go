package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

var (
	// ErrUnreachable says that no member of the control plane answered as its leader within Options.Patience.
	ErrUnreachable = errors.New("the control plane does not answer")
	// ErrFenced says that another consumer has attached as the same rank, so that this consumer gets nothing more.
	ErrFenced = protocol.ErrFenced
	// ErrNoJob says that the control plane does not have the job.
	ErrNoJob = errors.New("no such job")
	// ErrEnded says that the job was cancelled, has failed, or was abandoned.
	ErrEnded = protocol.ErrEnded
	// ErrAbandoned says that the job has ended because no rank had called for too long. It comes with ErrEnded.
	ErrAbandoned = errors.New("the job was abandoned")
	// ErrData says that the data or the program is at fault: every node would fail in the same way.
	ErrData = protocol.ErrData
	// ErrOptions says that options contradict each other or are out of range.
	ErrOptions = errors.New("options")
)

// DefaultPatience is how long calls wait for a leader: longer than an election takes (seconds), and longer than the
// restart of a control plane with one member.
const DefaultPatience = 2 * time.Minute

// maxMessage bounds an answer of the control plane; the manifest of a million partitions is of this size.
const maxMessage = 256 << 20

// Options say where the control plane is. Control is required.
type Options struct {
	Control  []string // the members: https://HOST:PORT, http://HOST:PORT or unix:PATH
	Identity identity.Options
	// Patience is how long a call asks the members for their leader; 0 means DefaultPatience.
	Patience time.Duration
	// Contact takes the place of Patience until a member has answered once; 0 means Patience. A wrong address or
	// identity is an error at once.
	Contact time.Duration
	Logger  *slog.Logger // nil discards the log
}

// Client calls a control plane.
type Client struct {
	options    Options
	defaultRun string       // names the run of ranks that name none
	http       *http.Client // to the control plane
	makers     *http.Client // to nodes and workers, which make mini-batches

	mu      sync.Mutex
	clients map[string]controlClient // by base URL: configured members, and leaders that they named
	members protocol.Members
}

// Dial makes a client. It does not wait for the control plane.
func Dial(o Options) (*Client, error) {
	if len(o.Control) == 0 {
		return nil, fmt.Errorf("%w: name at least one member of the control plane", ErrOptions)
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Contact == 0 {
		o.Contact = o.Patience
	}
	if o.Patience < 0 || o.Contact < 0 {
		return nil, fmt.Errorf("%w: a patience of %v, and of %v until a member answers: want neither below 0",
			ErrOptions, o.Patience, o.Contact)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	toControl, toMakers, err := makeClients(o.Identity)
	if err != nil {
		return nil, fmt.Errorf("dial control plane: %w", err)
	}
	var configured []string
	for _, raw := range o.Control {
		base, err := identity.BaseURL(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: control plane: %w", ErrOptions, err)
		}
		configured = append(configured, base)
	}
	return &Client{
		options: o, defaultRun: newRunName(), http: toControl, makers: toMakers, clients: map[string]controlClient{},
		members: protocol.NewMembers(configured, o.Patience, o.Contact),
	}, nil
}

// makeClients makes the clients towards the control plane, and towards the nodes and workers that make mini-batches.
// Only the second one accepts the workers of launchers, and only those of the caller's own owner.
func makeClients(o identity.Options) (toControl, toMakers *http.Client, err error) {
	own, err := o.Own()
	if err != nil {
		return nil, nil, err
	}
	if toControl, err = identity.HTTPClientOf(o, identity.AcceptControl); err != nil {
		return nil, nil, err
	}
	toMakers, err = identity.HTTPClientOf(o, identity.AcceptMakers(own))
	return toControl, toMakers, err
}

// Close closes idle connections. Jobs must be closed before.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.makers.CloseIdleConnections()
	return nil
}

// Leader returns the base URL of the member that the client takes for the leader: the member that answered last, or
// that another member named last.
func (c *Client) Leader() string { return c.preferredMember() }

// Submit hands a job over. A spec without a name gets one. Submit may be repeated: if an answer was lost and a job of
// this name and spec runs already, Submit returns that job.
func (c *Client) Submit(ctx context.Context, spec *apiv1.JobSpec) (*apiv1.JobStatus, error) {
	return c.SubmitFor(ctx, "", spec)
}

// SubmitFor is Submit by an operator for the launchers of an owner: the launchers whose certificate's name is the
// owner's, or begins with the owner's name and a dot. No other launcher may see the job, attach to it or cancel it.
// With an empty owner it is Submit.
func (c *Client) SubmitFor(ctx context.Context, owner string, spec *apiv1.JobSpec) (*apiv1.JobStatus, error) {
	return c.submit(ctx, owner, spec, nil)
}

// submit submits a job. own describes files of this machine if the job's partitions cannot be chosen without them; nil:
// there are none.
func (c *Client) submit(
	ctx context.Context, owner string, spec *apiv1.JobSpec, own func(context.Context) (*apiv1.OwnFiles, error),
) (*apiv1.JobStatus, error) {
	if spec == nil || len(spec.Pipeline) == 0 {
		return nil, fmt.Errorf("submit job: %w: no pipeline", ErrOptions)
	}
	spec = proto.CloneOf(spec)
	if spec.Name == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		spec.Name = "job-" + hex.EncodeToString(b[:])
	}
	r := &apiv1.SubmitJobRequest{Spec: spec, Owner: owner}
	resp, err := invoke(ctx, c, submitTime, controlClient.SubmitJob, r)
	if own != nil && connect.CodeOf(err) == connect.CodeFailedPrecondition && !lacksFiles(err) {
		var described error
		if r.OwnFiles, described = own(ctx); described != nil {
			return nil, fmt.Errorf("submit job %s: %w; %w", spec.Name, err, described)
		}
		resp, err = invoke(ctx, c, submitTime, controlClient.SubmitJob, r)
	}
	if err != nil {
		return nil, fmt.Errorf("submit job %s: %w", spec.Name, err)
	}
	if resp.Job == nil {
		return nil, fmt.Errorf("submit job %s: the answer has no job", spec.Name)
	}
	if ignored := ignoredField(spec, resp.Job.GetSpec()); ignored != "" {
		return nil, fmt.Errorf("submit job %s: the control plane is older than %s: cancel the job, and upgrade the "+
			"control plane", spec.Name, ignored)
	}
	return resp.Job, nil
}

// ignoredField names a field of a specification that the control plane does not know and has passed over, and says
// what job it has taken instead. It returns an empty text if there is none.
func ignoredField(asked, got *apiv1.JobSpec) string {
	boundary := asked.GetPlan().GetBoundary()
	switch {
	case boundary == dataset.BoundaryNone.String() && got.GetPlan().GetBoundary() != boundary:
		return "the boundary " + boundary + ", and has taken a job whose mini-batches end with partitions"
	case asked.GetFollowOnce() && !got.GetFollowOnce():
		return "follow_once, and has taken a job that delivers later partitions as often as the first ones"
	}
	return ""
}

// submitTime is how long one member gets to answer SubmitJob, which reads the manifest.
const submitTime = 30 * time.Second

// List returns the jobs that the control plane remembers.
func (c *Client) List(ctx context.Context) ([]*apiv1.JobStatus, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.ListJobs, &apiv1.ListJobsRequest{})
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return resp.Jobs, nil
}

// Get returns a job by id or name.
func (c *Client) Get(ctx context.Context, id string) (*apiv1.JobStatus, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.GetJob, &apiv1.GetJobRequest{Id: id})
	if err == nil && resp.Job == nil {
		err = errors.New("the answer has no job")
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	return resp.Job, nil
}

// Cancel ends a job for all its ranks.
func (c *Client) Cancel(ctx context.Context, id string) error {
	_, err := invoke(ctx, c, callTime, controlClient.CancelJob, &apiv1.CancelJobRequest{Id: id})
	if err != nil {
		return fmt.Errorf("cancel job %s: %w", id, err)
	}
	return nil
}

// Checkpoint returns the token of the whole job: the durable acknowledgements of all its ranks.
func (c *Client) Checkpoint(ctx context.Context, id string) ([]byte, error) {
	resp, err := invoke(ctx, c, callTime, controlClient.Checkpoint, &apiv1.CheckpointRequest{Id: id})
	if err != nil {
		return nil, fmt.Errorf("checkpoint of job %s: %w", id, err)
	}
	return resp.Token, nil
}

// jobStream is the statuses that Watch yields.
type jobStream = connect.ServerStreamForClient[apiv1.GetJobResponse]

// Watch yields a job whenever it changes, until it has ended. It goes on when the leader changes, and may then yield
// the same state again.
func (c *Client) Watch(ctx context.Context, id string) iter.Seq2[*apiv1.JobStatus, error] {
	return func(yield func(*apiv1.JobStatus, error) bool) {
		pauses := wait.Backoff{First: protocol.FirstPause, Longest: protocol.LastPause}
		for {
			stream, err := call(ctx, c, 0, func(ctx context.Context, m controlClient) (*jobStream, error) {
				s, err := m.WatchJob(ctx, &apiv1.WatchJobRequest{Id: id})
				if err != nil {
					return nil, err
				}
				if !s.Receive() { // an error of the call shows with the first message
					return nil, errors.Join(s.Err(), s.Close())
				}
				return s, nil
			})
			if err != nil {
				yield(nil, fmt.Errorf("watch job %s: %w", id, err))
				return
			}
			if stream == nil { // the stream ended without a message
				return
			}
			for ok, messages := true, 1; ok; ok, messages = stream.Receive(), messages+1 {
				if messages > 1 { // the first one comes at once, also from a member that then ends every stream
					pauses.Reset()
				}
				if job := stream.Msg().GetJob(); job != nil && !yield(job, nil) {
					_ = stream.Close()
					return
				}
			}
			err = stream.Err()
			_ = stream.Close()
			if err == nil {
				return
			}
			if fault, _ := c.faultOf(err); fault == protocol.FinalAnswer {
				yield(nil, fmt.Errorf("watch job %s: %w", id, withSentinel(err)))
				return
			}
			c.preferNextMember()
			if err := wait.Sleep(ctx, jittered(pauses.Next())); err != nil {
				yield(nil, fmt.Errorf("watch job %s: %w", id, err))
				return
			}
		}
	}
}
