package control

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// lines returns the lines of a file that another process writes. It returns none while the file does not exist.
func lines(path string) []string {
	b, _ := os.ReadFile(path)
	return strings.Fields(string(b))
}

// TestTheHookStartsAndStopsWorkers runs a real command. The job wants workers, the command starts the first worker,
// the job is delivered, and the command stops the worker, on which no lease is left.
func TestTheHookStartsAndStopsWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "hook.sh")
	require.NoError(t, os.WriteFile(script, []byte(`
[ "$MILLRACE_WORKER_COUNT" -eq $(echo $MILLRACE_WORKER_NAMES | wc -w) ] || exit 1
[ -n "$MILLRACE_WORKER_CONTROL" ] || exit 1
[ -e `+dir+`/failed ] || { touch `+dir+`/failed; exit 1; }
echo $MILLRACE_WORKER_JOBS >> `+dir+`/jobs
echo $MILLRACE_WORKER_NAMES >> `+dir+`/$MILLRACE_WORKER_ACTION
`), 0o700))
	o := testOptions(t)
	o.WorkerHook, o.WorkersMost, o.WorkerIdle = "sh "+script, 1, time.Second
	s, c := start(t, o)
	st, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Placement: "pool", TRowsPerSecond: 1000,
		Plan: &apiv1.PlanOptions{SplitBatches: 4}})

	var names []string
	require.Eventually(t, func() bool {
		_, err := k.lease(1, 0, 0)
		require.NoError(t, err)
		names = lines(filepath.Join(dir, "start"))
		return len(names) > 0
	}, time.Minute, 10*time.Millisecond)
	require.Len(t, names, 1, "one worker, which is all that is allowed")
	assert.True(t, strings.HasPrefix(names[0], "pool-"), names[0])
	assert.Equal(t, []string{st.Id}, lines(filepath.Join(dir, "jobs")))
	w := newWorker(t, names[0])
	stop := w.beats(t, c)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 400)

	require.Eventually(t, func() bool { return len(lines(filepath.Join(dir, "stop"))) > 0 }, time.Minute,
		10*time.Millisecond)
	assert.Equal(t, names, lines(filepath.Join(dir, "stop")))
	assert.Contains(t, []string{"draining", "silent"}, nodeRecord(t, s, names[0]).State)
	stop()
	l, err := s.leader()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.mu.fleet.Alive(names[0]) && !l.mu.fleet.Asked(names[0])
	}, time.Minute, 10*time.Millisecond, "its record may be forgotten")
	assert.Equal(t, names, lines(filepath.Join(dir, "start")), "no other was started")
}

// TestNoWorkerIsStartedThatCannotRead: while the only node that holds the data is dead, the hook starts no worker for a
// job that waits. When the node is back, it does.
func TestNoWorkerIsStartedThatCannotRead(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]*apiv1.JobSpec{
		"workers without data alone": {Name: "job", Placement: "pool"},
		"beside the drives":          {Name: "job", TRowsPerSecond: 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := testOptions(t)
			o.WorkerHook, o.WorkersMost = "echo $MILLRACE_WORKER_NAMES >> "+dir+"/$MILLRACE_WORKER_ACTION", 1
			s, c := start(t, o)
			a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000)}})
			stop := a.beats(t, c)
			await(t, c, "a")
			st := submitRunning(t, c, spec)
			stop()
			require.Eventually(t, func() bool { return nodeRecord(t, s, "a").State == "dead" }, time.Minute, time.Millisecond)
			k := attachedRank(t, c, st.Id, 0)
			began, decided := -1.0, autoscale.Record{}
			require.Eventually(t, func() bool { // workers that are missing for three seconds are started
				_, err := k.lease(1, 0, 0)
				assert.NoError(t, err)
				r, err := s.Decisions(patient(t), &apiv1.DecisionsRequest{Id: "job"})
				if !assert.NoError(t, err) || len(r.Decisions) == 0 {
					return false
				}
				assert.NoError(t, json.Unmarshal([]byte(r.Decisions[len(r.Decisions)-1]), &decided))
				if began < 0 {
					began = decided.Inputs.Seconds
				}
				return decided.Inputs.Seconds > began+5
			}, time.Minute, 10*time.Millisecond)
			assert.Empty(t, lines(filepath.Join(dir, "start")), decided.Decision.Why)
			a.beats(t, c)
			require.Eventually(t, func() bool {
				_, err := k.lease(1, 0, 0)
				return err == nil && len(lines(filepath.Join(dir, "start"))) == 1
			}, time.Minute, 10*time.Millisecond)
		})
	}
}

// TestNobodyElsesWorkerIsStopped: the hook stops only workers that it started.
func TestNobodyElsesWorkerIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := testOptions(t)
	o.WorkerHook, o.WorkerIdle = "echo $MILLRACE_WORKER_NAMES >> "+dir+"/$MILLRACE_WORKER_ACTION", time.Millisecond
	s, c := start(t, o)
	mine := newWorker(t, "mine")
	theirs := newWorker(t, "pool-1-1")
	mine.beats(t, c)
	theirs.beats(t, c)
	await(t, c, "mine", "pool-1-1")
	require.Eventually(t, func() bool { return len(lines(filepath.Join(dir, "stop"))) > 0 }, time.Minute,
		10*time.Millisecond)
	assert.Equal(t, []string{"pool-1-1"}, lines(filepath.Join(dir, "stop")))
	assert.Contains(t, lively, nodeRecord(t, s, "mine").State)
}

func TestOwnerShareIsAPartOfTheWhole(t *testing.T) {
	for share, valid := range map[float64]bool{
		-0.1: false, 0: true, 1e-9: true, 1: true, 1.001: false, math.NaN(): false,
	} {
		_, err := Options{OwnerShare: share}.withDefaults()
		assert.Equal(t, valid, err == nil, "%v: %v", share, err)
	}
}

func TestOptionsOfThePool(t *testing.T) {
	for name, bad := range map[string]Options{
		"below 0":      {WorkersLeast: -1},
		"most < least": {WorkersLeast: 3, WorkersMost: 2},
		"too many":     {WorkersMost: 10_001},
		"idle":         {WorkerIdle: -1},
		"time":         {WorkerHookTimeout: -1},
	} {
		_, err := bad.withDefaults()
		assert.Error(t, err, name)
	}
	o, err := Options{WorkersLeast: 20}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, 20, o.WorkersMost)
	o, err = Options{}.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, o.WorkerIdle)
	_, err = Options{WorkersMost: 10_000}.withDefaults()
	assert.NoError(t, err)
}
