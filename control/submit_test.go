package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestJobsThatCannotBeAreRefusedInWords: invalid jobs are refused with an explanation, and nothing of them is
// stored.
func TestJobsThatCannotBeAreRefusedInWords(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.MaxJobs, o.MaxSplits = 1, 100
	s, c := start(t, o)
	other := partition(t, "q0", 10)
	other.Schema = make([]byte, 32)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000), partition(t, "empty", 0),
		other}})
	sealedElsewhere := record.WrapToken(make([]byte, record.KeyBytes), bareToken(t))
	foreign := bareToken(t)
	for name, tc := range map[string]struct {
		change func(*apiv1.JobSpec)
		code   connect.Code
		says   []string
	}{
		"no pipeline": {func(j *apiv1.JobSpec) { j.Pipeline = nil }, connect.CodeInvalidArgument,
			[]string{"no pipeline"}},
		"name": {func(j *apiv1.JobSpec) { j.Name = "Ads/1" }, connect.CodeInvalidArgument, []string{"1 to 63"}},
		"no such operator": {func(j *apiv1.JobSpec) {
			j.Pipeline = []byte("name: x\nsparse:\n  - columns: [cat_0]\n    ops: [hash: 1]\n")
		}, connect.CodeInvalidArgument, []string{"line 4", "hash"}},
		"no such column": {func(j *apiv1.JobSpec) { j.Pipeline = []byte("name: x\nsparse:\n  - columns: [cat_7]\n") },
			connect.CodeInvalidArgument, []string{"line 3:15", "cat_7"}},
		"a pipeline by its name": {func(j *apiv1.JobSpec) { j.Pipeline = []byte("rm1") }, connect.CodeInvalidArgument,
			[]string{"missing column", "int_"}},
		"no such name": {func(j *apiv1.JobSpec) { j.Pipeline = []byte("rm9") }, connect.CodeInvalidArgument,
			[]string{"want a mapping"}},
		"too large": {func(j *apiv1.JobSpec) { j.Pipeline = append(j.Pipeline, make([]byte, MaxSpec)...) },
			connect.CodeInvalidArgument, []string{"at most"}},
		"pattern": {func(j *apiv1.JobSpec) { j.Partitions = []string{"[p"} },
			connect.CodeInvalidArgument, []string{"[p"}},
		"matches nothing": {func(j *apiv1.JobSpec) { j.Partitions = []string{"z*"} },
			connect.CodeFailedPrecondition, []string{"no live node"}},
		"all excluded": {func(j *apiv1.JobSpec) { j.Exclude = []string{"*"} }, connect.CodeFailedPrecondition,
			[]string{"no live node"}},
		"a schema that no node knows": {func(j *apiv1.JobSpec) { j.Partitions = nil }, connect.CodeFailedPrecondition,
			[]string{"no node says what the columns", "q0"}},
		"no rows": {func(j *apiv1.JobSpec) { j.Partitions = []string{"empty"} },
			connect.CodeInvalidArgument, []string{"hold no row"}},
		"order": {func(j *apiv1.JobSpec) { j.Order = "random" }, connect.CodeInvalidArgument,
			[]string{"order"}},
		"rank tail": {func(j *apiv1.JobSpec) { j.RankTail = "x" }, connect.CodeInvalidArgument,
			[]string{"rank_tail"}},
		"weight": {func(j *apiv1.JobSpec) { j.Weight = -1 }, connect.CodeInvalidArgument,
			[]string{"weight"}},
		"T": {func(j *apiv1.JobSpec) { j.TRowsPerSecond = -1 }, connect.CodeInvalidArgument,
			[]string{"T of"}},
		"ranks": {func(j *apiv1.JobSpec) { j.Ranks = record.MaxRanks + 1 },
			connect.CodeInvalidArgument, []string{"ranks"}},
		"epochs": {func(j *apiv1.JobSpec) { j.Epochs = record.MaxEpoch + 1 },
			connect.CodeInvalidArgument, []string{"epochs"}},
		"follow_once without follow": {func(j *apiv1.JobSpec) { j.FollowOnce = true },
			connect.CodeInvalidArgument, []string{"follow_once without follow: set follow"}},
		"more ranks than work": {func(j *apiv1.JobSpec) { j.Ranks = 101 }, connect.CodeInvalidArgument,
			[]string{"100 mini-batches cannot be shared out equally to 101 ranks"}},
		"batch": {func(j *apiv1.JobSpec) { j.Plan.Batch = -3 }, connect.CodeInvalidArgument,
			[]string{"batch -3"}},
		"shuffle": {func(j *apiv1.JobSpec) { j.Plan.Shuffle = "well" }, connect.CodeInvalidArgument,
			[]string{"shuffle"}},
		"boundary": {func(j *apiv1.JobSpec) { j.Plan.Boundary = "file" }, connect.CodeInvalidArgument,
			[]string{"boundary", "partition none"}},
		"too many splits": {func(j *apiv1.JobSpec) { j.Plan.Batch, j.Plan.SplitBatches = 1, 1 },
			connect.CodeInvalidArgument, []string{"more than 100 splits"}},
		"another cluster": {func(j *apiv1.JobSpec) { j.Resume = sealedElsewhere }, connect.CodeInvalidArgument,
			[]string{"not this cluster's"}},
		"another job": {func(j *apiv1.JobSpec) { j.Epochs, j.Resume = 9, foreign },
			connect.CodeInvalidArgument, []string{"of another job"}},
		"an epoch beyond": {func(j *apiv1.JobSpec) { j.Resume = foreign }, connect.CodeInvalidArgument,
			[]string{"epoch 3"}},
		"no token": {func(j *apiv1.JobSpec) { j.Resume = []byte("x") }, connect.CodeInvalidArgument,
			[]string{"checkpoint token"}},
	} {
		spec := &apiv1.JobSpec{Name: "job", Pipeline: []byte(testPipeline), Partitions: []string{"p*"},
			Plan: &apiv1.PlanOptions{}}
		tc.change(spec)
		_, err := trySubmit(t, c, spec)
		require.Error(t, err, name)
		assert.Equal(t, tc.code, connect.CodeOf(err), "%s: %v", name, err)
		for _, says := range tc.says {
			assert.ErrorContains(t, err, says, name)
		}
	}
	_, err := s.SubmitJob(patient(t), &apiv1.SubmitJobRequest{})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))

	st := submit(t, c, &apiv1.JobSpec{Name: "job", Partitions: []string{"p*"}})
	same, err := trySubmit(t, c, &apiv1.JobSpec{Name: "job", Pipeline: []byte(testPipeline),
		Partitions: []string{"p*"}})
	require.NoError(t, err, "word for word the same")
	assert.Equal(t, st.Id, same.Id)
	_, err = trySubmit(t, c, &apiv1.JobSpec{Name: "job", Pipeline: []byte(testPipeline), Partitions: []string{"p0"}})
	assert.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err))
	_, err = trySubmit(t, c, &apiv1.JobSpec{Name: "another", Pipeline: []byte(testPipeline),
		Partitions: []string{"p0"}})
	assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
	list, err := s.ListJobs(patient(t), &apiv1.ListJobsRequest{})
	require.NoError(t, err)
	assert.Len(t, list.Jobs, 1)
}

// TestAJobResumesFromAToken: the token is of another job with the same data, sealed or bare.
func TestAJobResumesFromAToken(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 500)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "first", Epochs: 2, Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	until(t, c, "first", "running")
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(5))
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: st.Id, Session: k.session})
	})
	require.NoError(t, err)
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CancelJobResponse,
		error) {
		return m.CancelJob(ctx, &apiv1.CancelJobRequest{Id: st.Id})
	})
	require.NoError(t, err)
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(k.attach(nil)), "it has ended")
	bare := r.Token[len("MRT1") : len(r.Token)-32]
	for name, token := range map[string][]byte{"sealed": r.Token, "bare": bare} {
		again := submit(t, c, &apiv1.JobSpec{Name: name, Epochs: 2, Resume: token,
			Plan: &apiv1.PlanOptions{SplitBatches: 4}})
		assert.Equal(t, st.Digest, again.Digest)
		until(t, c, name, "running")
		rest := newConsumer(t, c, again.Id, 0)
		assert.ErrorContains(t, rest.attach(bare), "not sealed")
		require.NoError(t, rest.attach(nil))
		require.NoError(t, rest.consume(0))
		until(t, c, name, "done")
		assert.Len(t, rest.got, 100-len(k.got), "both epochs, but what the token has")
		for m := range rest.got {
			assert.NotContains(t, k.got, m)
		}
	}
}

// TestAJobFollowsADataSetThatGrows: new partitions are delivered as further epochs of another digest, as often as the
// first ones or once, even over a restart.
func TestAJobFollowsADataSetThatGrows(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct {
		spec     *apiv1.JobSpec
		perDay   []int // how often each day is delivered
		restarts int   // after this number of mini-batches
	}{
		"one epoch":              {&apiv1.JobSpec{}, []int{1, 1, 1, 1}, 30},
		"three epochs":           {&apiv1.JobSpec{Epochs: 3}, []int{3, 3, 3}, 45},
		"three epochs, and once": {&apiv1.JobSpec{Epochs: 3, FollowOnce: true}, []int{3, 1, 1, 1}, 42},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFollowing(t, v.spec, v.perDay, v.restarts)
		})
	}
}

// testFollowing submits a job that follows, and lets a day appear when all days before are delivered. It checks which
// epochs each day has. The control plane restarts as soon as some mini-batches are acknowledged.
func testFollowing(t *testing.T, spec *apiv1.JobSpec, perDay []int, restarts int) {
	o := testOptions(t)
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	c := newClient(s)
	days := []*apiv1.Partition{partition(t, "day-1", 100), partition(t, "day-9", 100), partition(t, "elsewhere", 10)}
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": days})
	stop := n.beats(t, c)
	await(t, c, "n")
	spec.Name, spec.Partitions, spec.Exclude, spec.Follow = "grows", []string{"day-*"}, []string{"day-9"}, true
	spec.Plan = &apiv1.PlanOptions{SplitBatches: 2}
	st := submit(t, c, spec)
	assert.Equal(t, spec.FollowOnce, st.Spec.FollowOnce)
	until(t, c, "grows", "running")
	k := attachedRank(t, c, st.Id, 0)
	first, digests := 0, map[string]bool{}
	for i, epochs := range perDay {
		for end := 10 * (first + epochs); len(k.got) < end; {
			require.NoError(t, k.consume(1))
			if len(k.got) >= restarts && stop != nil {
				stop()
				require.NoError(t, s.Close())
				s, c = start(t, o)
				k.c = c
				n.beats(t, c)
				await(t, c, "n")
				stop = nil
			}
		}
		until(t, c, "grows", "waiting: new partitions")
		digests[k.digest.String()] = true
		for epoch := first; epoch < first+epochs; epoch++ {
			for number := range 10 {
				assert.Equal(t, 1, k.got[fmt.Sprintf("%s/%d/%d", k.digest, epoch, number)], "day %d, epoch %d", i+1, epoch)
			}
		}
		first += epochs
		days = append(days, partition(t, fmt.Sprintf("day-%d", i+2), 100))
		n.holds(t, map[string][]*apiv1.Partition{"d": days})
	}
	assert.Nil(t, stop, "the control plane has restarted")
	assert.Len(t, digests, len(perDay))
	// A cancelled job does not go on with new partitions.
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CancelJobResponse,
		error) {
		return m.CancelJob(ctx, &apiv1.CancelJobRequest{Id: "grows"})
	})
	require.NoError(t, err)
	r, err := k.lease(1, 4, 0)
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(err), "%v %v", r, err)
}

// TestANodeThatCannotPrepare: the job fails with the node's error, unless another node holds the partition.
func TestANodeThatCannotPrepare(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	b := liveNode(t, c, "b", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100), partition(t, "p1", 100)}})
	b.refuse = connect.NewError(connect.CodeFailedPrecondition,
		errors.New("p1 is not what the manifest says: its footer changed"))
	st := submit(t, c, &apiv1.JobSpec{Name: "both"})
	require.Eventually(t, func() bool { return strings.HasPrefix(get(t, c, st.Id).State, "failed: ") }, time.Minute,
		5*time.Millisecond)
	assert.Contains(t, get(t, c, st.Id).State,
		"partition p1: node b: prepare: failed_precondition: p1 is not what the manifest says")
	submit(t, c, &apiv1.JobSpec{Name: "one", Partitions: []string{"p0"}})
	until(t, c, "one", "running")
	k := attachedRank(t, c, "one", 0)
	require.NoError(t, k.consume(0))
	until(t, c, "one", "done")
	assert.Len(t, k.got, 10)
}

// TestANodeThatIsKilledWhileItIsAsked: a node resets connections, answers that it ends, and closes connections, and
// the job waits for the node.
func TestANodeThatIsKilledWhileItIsAsked(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	n.resets["Prepare"], n.resets["Measure"] = 2*prepareTries+1, 2
	n.beats(t, c)
	await(t, c, "n")
	submit(t, c, &apiv1.JobSpec{Name: "reset"})
	until(t, c, "reset", "running")
	n.mu.Lock()
	assert.Equal(t, map[string]int{"Prepare": 0, "Measure": 0}, n.resets)
	n.refuse = connect.NewError(connect.CodeCanceled, context.Canceled)
	n.mu.Unlock()
	submit(t, c, &apiv1.JobSpec{Name: "ends", Plan: &apiv1.PlanOptions{Seed: 1}})
	until(t, c, "ends", "preparing: for a node: partition p0: node n: prepare: unavailable: canceled: context canceled")
	n.mu.Lock()
	n.refuse = nil
	n.mu.Unlock()
	until(t, c, "ends", "running")
}

func TestUnreached(t *testing.T) {
	for want, errs := range map[connect.Code][]error{
		connect.CodeUnavailable: {
			connect.NewError(connect.CodeCanceled, syscall.ECONNRESET), connect.NewError(connect.CodeDeadlineExceeded,
				context.DeadlineExceeded),
			connect.NewError(connect.CodeUnavailable, io.EOF), io.ErrUnexpectedEOF,
		},
		connect.CodeResourceExhausted: {connect.NewError(connect.CodeResourceExhausted,
			errors.New("an answer too large"))},
		connect.CodeFailedPrecondition: {connect.NewError(connect.CodeFailedPrecondition, errors.New("it changed"))},
	} {
		for _, err := range errs {
			assert.Equal(t, want, connect.CodeOf(unreached(err)), "%v", err)
			assert.ErrorIs(t, unreached(err), err)
		}
	}
	assert.NoError(t, unreached(nil))
}

// TestADriveThatIsBeingOpenedIsWaitedFor: the drive may hold partitions of the job. The job waits as long as a node
// may be silent, and the job's reason names the drive.
func TestADriveThatIsBeingOpenedIsWaitedFor(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.DeadAfter = 2 * time.Second
	s, c := start(t, o)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	n.set(func(st *apiv1.NodeStatus) {
		st.Drives = append(st.Drives, &apiv1.Drive{Name: "e", State: "opening"})
	})
	n.beats(t, c)
	await(t, c, "n")
	_, err := s.SubmitJob(patient(t), &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "early",
		Pipeline: []byte(testPipeline)}})
	require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err), "%v", err)
	assert.ErrorContains(t, err, "node n is opening its drive e (waited for ")
	n.holds(t, map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}, "e": {partition(t, "p1", 100)}})
	require.Eventually(t, func() bool {
		st, err := s.SubmitJob(patient(t), &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "whole",
			Pipeline: []byte(testPipeline)}})
		return err == nil && st.Job.Rows == 200
	}, time.Minute, 10*time.Millisecond)
}

// TestANodeWithoutRoomIsWaitedFor: the job's reason names the node that the job waits for. The job goes on when
// there is room, or it is cancelled.
func TestANodeWithoutRoomIsWaitedFor(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100), partition(t, "p1", 100)}})
	n.refuse = connect.NewError(connect.CodeResourceExhausted, errors.New("too many jobs: 4 are prepared"))
	const why = "preparing: for room: partition p0: node n: prepare: resource_exhausted: too many jobs: 4 are prepared"
	submit(t, c, &apiv1.JobSpec{Name: "waits"})
	until(t, c, "waits", why)
	submit(t, c, &apiv1.JobSpec{Name: "gives-up", Partitions: []string{"p0"}})
	until(t, c, "gives-up", why)
	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CancelJobResponse,
		error) {
		return m.CancelJob(ctx, &apiv1.CancelJobRequest{Id: "gives-up"})
	})
	require.NoError(t, err)
	n.mu.Lock()
	n.refuse = nil
	n.mu.Unlock()
	until(t, c, "waits", "running")
	assert.Equal(t, "cancelled", get(t, c, "gives-up").State)
}

// TestANodeThatIsAwayIsWaitedFor: a node that was killed when a job was being prepared, or measured, is started again,
// and the job goes on. Found by killing nodes at random.
func TestANodeThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	_, c := start(t, o)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	closed := connect.NewError(connect.CodeUnavailable, errors.New("drive d is not open"))
	n.refuse = closed
	n.beats(t, c)
	await(t, c, "n")
	submit(t, c, &apiv1.JobSpec{Name: "job"})
	until(t, c, "job", "preparing: for a node: partition p0: node n: prepare: unavailable: drive d is not open")
	n.mu.Lock()
	n.refuse, n.unmeasured = nil, closed
	n.mu.Unlock()
	until(t, c, "job", "measuring: for a node: no drive's P could be measured: node n: drive d: measure P: "+
		"unavailable: drive d is not open")
	n.mu.Lock()
	n.unmeasured = connect.NewError(connect.CodeNotFound, errors.New("no such job"))
	n.mu.Unlock()
	require.Eventually(t, func() bool { return strings.Contains(get(t, c, "job").State, "no such job") },
		time.Minute, 5*time.Millisecond)
	n.mu.Lock()
	n.unmeasured = nil
	n.mu.Unlock()
	until(t, c, "job", "running")
}

// TestANodeThatStaysAway: the job fails with an error that names the cause.
func TestANodeThatStaysAway(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.DeadAfter = 200 * time.Millisecond
	_, c := start(t, o)
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	n.refuse = connect.NewError(connect.CodeUnavailable, errors.New("drive d is not open"))
	began := time.Now()
	require.Eventually(t, func() bool { // On a loaded machine the node counts as dead at times.
		_, err := trySubmit(t, c, &apiv1.JobSpec{Name: "never", Pipeline: []byte(testPipeline)})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return strings.HasPrefix(get(t, c, "never").State, "failed: partition p0: ") },
		time.Minute, 20*time.Millisecond)
	assert.Greater(t, time.Since(began), awayTime*o.DeadAfter)
}

// TestTheStatusSaysHowTheJobIsCut: the status has the plan's options even if the pipeline or a default decides them.
func TestTheStatusSaysHowTheJobIsCut(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "job"})
	assert.EqualExportedValues(t, &apiv1.PlanOptions{Batch: 10, Tail: "keep", Shuffle: "splits", SplitBatches: 16},
		st.Spec.Plan)
	st = submit(t, c, &apiv1.JobSpec{Name: "default",
		Pipeline: []byte("name: test\nsparse:\n  - columns: [cat_0]\n    ops: [sigrid_hash: {salt: 0, max: 1000}]\n")})
	assert.EqualValues(t, dataset.DefaultBatch, st.Spec.Plan.Batch)
}

// TestEndedJobsAreForgotten: the oldest jobs are forgotten first.
func TestEndedJobsAreForgotten(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.History = 2
	s, c := start(t, o)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	for _, name := range []string{"a", "b", "c", "d"} {
		submit(t, c, &apiv1.JobSpec{Name: name})
		until(t, c, name, "running")
		_, err := s.CancelJob(patient(t), &apiv1.CancelJobRequest{Id: name})
		require.NoError(t, err)
		_, err = s.CancelJob(patient(t), &apiv1.CancelJobRequest{Id: name})
		require.NoError(t, err, "cancelled twice")
		_ = wait.Sleep(patient(t), 5*time.Millisecond)
	}
	require.Eventually(t, func() bool {
		r, err := s.ListJobs(patient(t), &apiv1.ListJobsRequest{})
		require.NoError(t, err)
		return len(r.Jobs) == 2
	}, time.Minute, 5*time.Millisecond)
	stored := map[string]bool{}
	require.NoError(t, s.leading.Load().term.Scan(patient(t), record.JobPrefix, func(key string, _ []byte) error {
		id, rest, _ := record.SplitKey(key)
		stored[id] = true
		assert.False(t, strings.HasPrefix(rest, "data/"), key)
		return nil
	}))
	assert.Len(t, stored, 2)
	_, err := s.GetJob(patient(t), &apiv1.GetJobRequest{Id: "nobody"})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// bareToken is a token that no control plane has sealed.
func bareToken(t testing.TB) []byte {
	b, err := dataset.Token{Job: dataset.Digest{7}, Epoch: 3, Mark: 100, Ranges: []dataset.Range{{From: 102,
		To: 110}}}.MarshalBinary()
	require.NoError(t, err)
	return b
}

// TestABoundOfASubmission checks that a submission may be as long as the bound, with the description of its files, and
// not a byte longer.
func TestABoundOfASubmission(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	ctx := patient(t) // without callControl's bound of a call, after which the server holds the request for a while
	own := &apiv1.OwnFiles{Schemas: []*apiv1.Schema{{}}}
	r := &apiv1.SubmitJobRequest{OwnFiles: own, Spec: &apiv1.JobSpec{Name: "long", Pipeline: []byte(testPipeline)}}
	own.Schemas[0].Columns = make([]byte, maxSubmit)
	own.Schemas[0].Columns = make([]byte, 2*maxSubmit-proto.Size(r))
	require.Equal(t, maxSubmit, proto.Size(r))
	for _, says := range []string{"of 0 files of the submitter's machine none does", "this call takes"} {
		_, err := c.members[0].SubmitJob(ctx, r)
		require.ErrorContains(t, err, says)
		own.Schemas[0].Columns = append(own.Schemas[0].Columns, 0)
	}
}
