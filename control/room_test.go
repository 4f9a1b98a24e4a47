package control

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// smallNode starts a member whose launchers are gone after a second without a call, and a node with room for one job
// over one of its two partitions.
func smallNode(t *testing.T, o Options) (*Server, *client, *fakeNode) {
	t.Helper()
	o.SessionTTL = time.Second
	s, c := start(t, o)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200), partition(t, "p1", 200)}})
	n.room = 1
	n.beats(t, c)
	await(t, c, "n")
	return s, c, n
}

// attaching attaches a rank to a job as a launcher does that waits for as long as it takes.
func attaching(t *testing.T, s *Server, id string) (k *consumer, attached chan error) {
	own, _ := process(t, s)
	k, attached = newConsumer(t, own, id, 0), make(chan error, 1)
	go func() { attached <- k.attach(nil) }()
	return k, attached
}

// callsOn keeps an attached rank attached, as a launcher's report loop does.
func (k *consumer) callsOn(t *testing.T) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
				_, err := k.lease(0, k.epoch, 0)
				assert.NoError(t, err)
			}
		}
	}()
	return func() { close(done); <-ended }
}

// TestRoomGoesToJobsWithRanks: a job that no rank attaches to gives its room to the next one, and both states name
// the other job. When a rank attaches to it after all, it waits until the other job's rank is gone, and is then
// prepared again, and not measured again.
func TestRoomGoesToJobsWithRanks(t *testing.T) {
	t.Parallel()
	s, c, n := smallNode(t, testOptions(t))
	first := submitRunning(t, c, &apiv1.JobSpec{Name: "first", Partitions: []string{"p0"}})
	second := submit(t, c, &apiv1.JobSpec{Name: "second", Partitions: []string{"p1"}})
	heldByFirst := "preparing: for room held by " + first.Id + ": partition p1: node n: prepare: resource_exhausted: " +
		"drive d: SLM Reserve: insufficient resources"
	until(t, c, second.Id, heldByFirst)

	k2, attached := attaching(t, s, second.Id)
	require.NoError(t, <-attached)
	stop := k2.callsOn(t)
	until(t, c, first.Id, "waiting: for a rank to attach: its room goes to job "+second.Id)

	k1, attached := attaching(t, s, first.Id)
	until(t, c, first.Id, "waiting: for room held by "+second.Id+": partition p0: node n: prepare: resource_exhausted: "+
		"drive d: SLM Reserve: insufficient resources")
	st := get(t, c, second.Id)
	assert.Equal(t, "running", st.State, "an attached rank keeps the room")
	assert.True(t, st.Ranks[0].Attached)
	select {
	case err := <-attached:
		require.FailNow(t, "it does not wait", "%v", err)
	default:
	}

	stop()
	require.NoError(t, k2.consume(0))
	until(t, c, second.Id, "done")
	require.NoError(t, <-attached)
	until(t, c, first.Id, "running")
	require.NoError(t, k1.consume(0))
	until(t, c, first.Id, "done")
	assert.Len(t, k1.got, 20)
	n.mu.Lock()
	defer n.mu.Unlock()
	assert.Equal(t, 2, n.prepared[string(first.Digest)])
	assert.Equal(t, 2, n.measures, "P of each job once")
}

// TestJobsThatWaitForEachOther: the first job has the room of one node and waits for that of the other, which the
// second job has, and the second job the other way round. Ranks of both call. The second job, which was submitted
// later, yields, and runs once the first one is done.
func TestJobsThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	var nodes [2]*fakeNode
	for i, name := range []string{"a", "b"} {
		nodes[i] = newNode(t, name, map[string][]*apiv1.Partition{
			"d": {partition(t, "first-"+name, 200), partition(t, "second-"+name, 200)}})
		nodes[i].room = 1
		nodes[i].beats(t, c)
		await(t, c, name)
	}
	b := nodes[1]
	fill := func(with string) { // node b's room
		b.mu.Lock()
		defer b.mu.Unlock()
		clear(b.has)
		b.has[with] = true
	}
	fill("another job")
	first := submit(t, c, &apiv1.JobSpec{Name: "first", Partitions: []string{"first-*"}})
	k1, attached1 := attaching(t, s, first.Id)
	awaitRefusal(t, s, first.Id)
	second := submit(t, c, &apiv1.JobSpec{Name: "second", Partitions: []string{"second-*"}})
	k2, attached2 := attaching(t, s, second.Id)
	awaitRefusal(t, s, second.Id)
	fill(string(get(t, c, second.Id).Digest))

	require.NoError(t, <-attached1)
	require.Eventually(t, func() bool {
		return strings.Contains(get(t, c, second.Id).State, apiv1.RoomHeldBy+first.Id)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, k1.consume(0))
	until(t, c, first.Id, "done")
	require.NoError(t, <-attached2)
	require.NoError(t, k2.consume(0))
	until(t, c, second.Id, "done")
	assert.Len(t, k1.got, 40)
	assert.Len(t, k2.got, 40)
}

// awaitRefusal waits until a node has refused a job for lack of room.
func awaitRefusal(t *testing.T, s *Server, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		l := s.leading.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.mu.upkeep.LacksRoom(l.mu.jobs[id].digests())
	}, time.Minute, 10*time.Millisecond)
}

// TestASuspendedJobOutlivesItsLeader: a later leader does not prepare it before a rank calls, a call of a session that
// was attached before is enough, and the mini-batches that were acknowledged before do not come again.
func TestASuspendedJobOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.SessionTTL = time.Second
	s := leadAgain(t, o)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200), partition(t, "p1", 200)}})
	n.room = 1
	stop := n.beats(t, c)
	await(t, c, "n")
	first := submitRunning(t, c, &apiv1.JobSpec{Name: "first", Partitions: []string{"p0"},
		Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	k := attachedRank(t, c, first.Id, 0)
	require.NoError(t, k.consume(3))
	had := len(k.got)
	second := submit(t, c, &apiv1.JobSpec{Name: "second", Partitions: []string{"p1"}})
	_, attached := attaching(t, s, second.Id)
	require.NoError(t, <-attached)
	assert.True(t, strings.HasPrefix(get(t, c, first.Id).State, "waiting: for a rank to attach"))
	require.Eventually(t, func() bool {
		l := s.leading.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.mu.jobs[first.Id].Unwritten()
	}, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, s.Close())

	s = leadAgain(t, o)
	c = newClient(s)
	n.beats(t, c)
	await(t, c, "n")
	_, err := s.CancelJob(patient(t), &apiv1.CancelJobRequest{Id: second.Id})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.has) == 0
	}, time.Minute, 10*time.Millisecond)
	st := get(t, c, first.Id)
	assert.True(t, strings.HasPrefix(st.State, "waiting: for a rank to attach"), st.State)
	k.c = c
	r, err := k.lease(1, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Grants)
	assert.Contains(t, r.Waiting, "for nodes to be prepared again")
	require.NoError(t, k.consume(0))
	until(t, c, first.Id, "done")
	assert.Len(t, k.got, 20)
	assert.Less(t, had, 20)
	require.NoError(t, s.Close())
}

// TestAJobThatNobodyAttachesToEnds: the time is that of the control plane, from both sides, and one that the job sets
// itself takes precedence.
func TestAJobThatNobodyAttachesToEnds(t *testing.T) {
	t.Parallel()
	s, c, _ := smallNode(t, testOptions(t))
	submit(t, c, &apiv1.JobSpec{Name: "died", Partitions: []string{"p0"}})
	submit(t, c, &apiv1.JobSpec{Name: "patient", Partitions: []string{"p0"}, AbandonAfterSeconds: 3600})
	until(t, c, "died", "running")
	st := until(t, c, "patient", "running")
	assert.EqualValues(t, 3600, st.AbandonAfterSeconds)
	assert.EqualValues(t, 600, get(t, c, "died").AbandonAfterSeconds)
	l := s.leading.Load()
	l.mu.Lock()
	began := time.Now()
	letPass(l, began.Add(2*time.Second))
	letPass(l, began.Add(9*time.Minute))
	before := l.mu.machine.Lives.Find("died").Phase()
	letPass(l, began.Add(11*time.Minute))
	after, other := l.mu.machine.Lives.Find("died"), l.mu.machine.Lives.Find("patient").Phase()
	l.mu.Unlock()
	assert.Equal(t, record.Running, before)
	assert.Equal(t, record.Abandoned, after.Phase())
	assert.Contains(t, after.Words(), "no rank has attached since ")
	assert.Equal(t, record.Running, other)
}
