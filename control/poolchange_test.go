package control

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/workerpool"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
)

// hookFiles are the files of a hook command that writes its calls. The command then waits while the file
// hold is there.
type hookFiles struct{ dir string }

func newHookFiles(t *testing.T) (f hookFiles, command string) {
	f = hookFiles{dir: t.TempDir()}
	script := filepath.Join(f.dir, "hook.sh")
	require.NoError(t, os.WriteFile(script, []byte(`
echo $MILLRACE_WORKER_NAMES >> `+f.dir+`/$MILLRACE_WORKER_ACTION
echo $MILLRACE_WORKER_JOBS >> `+f.dir+`/jobs
while [ -e `+f.dir+`/hold ]; do sleep 0.05; done
`), 0o700))
	return f, "sh " + script
}

func (f hookFiles) hold(t *testing.T) {
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "hold"), nil, 0o600))
}

func (f hookFiles) release(t *testing.T) { require.NoError(t, os.Remove(filepath.Join(f.dir, "hold"))) }

// calls returns the names of all calls of an action, in the order of the calls.
func (f hookFiles) calls(action string) []string { return lines(filepath.Join(f.dir, action)) }

// awaitCalls waits until the hook was called for a number of names.
func (f hookFiles) awaitCalls(t *testing.T, action string, names int) []string {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.calls(action)) >= names }, time.Minute, 10*time.Millisecond,
		"%d names to %s", names, action)
	return f.calls(action)
}

// leadAgain starts a single member, and waits until it leads.
func leadAgain(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	return s
}

// storedWorker returns the record of a worker that was started; empty: it has none.
func storedWorker(t *testing.T, s *Server, name string) string {
	t.Helper()
	l, err := s.leader()
	require.NoError(t, err)
	b, _, err := l.term.Get(patient(t), record.PoolPrefix+name)
	require.NoError(t, err)
	return string(b)
}

// outlast waits until a leader counts every node that has not called it as dead, and has reviewed its workers since.
func outlast(t *testing.T, s *Server) {
	t.Helper()
	l, err := s.leader()
	require.NoError(t, err)
	require.NoError(t, wait.Sleep(patient(t), time.Until(l.began.Add(l.o.DeadAfter+20*l.o.ScaleEvery))))
}

// TestLeadersChangeWhileTheHookIsUsed kills the leader at every step in the life of a worker that the hook starts:
// while the hook starts the worker, before the worker joins, while the worker lives, and while the hook stops it. One
// worker is kept, so that a leader that does not know of the worker starts a second one at once. It takes most of a
// minute, because each of six leaders waits for the end of the lease of the leader that was killed, which is two
// seconds so that a busy machine keeps it, and two of them wait until a silent node counts as dead.
func TestLeadersChangeWhileTheHookIsUsed(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	files, command := newHookFiles(t)
	o.WorkerHook, o.WorkersLeast, o.WorkersMost, o.WorkerIdle = command, 1, 4, 10*time.Millisecond
	o.LeaderTTL = 2 * time.Second // The next leader waits for the rest of it.
	o.DeadAfter = 5 * time.Second

	files.hold(t)
	s := leadAgain(t, o)
	name := files.awaitCalls(t, "start", 1)[0]
	require.NoError(t, kill(s)) // the hook is running

	s = leadAgain(t, o)
	assert.Equal(t, []string{name, name}, files.awaitCalls(t, "start", 2), "the same worker again, no second one")
	files.release(t)
	require.Eventually(t, func() bool { return strings.Contains(storedWorker(t, s, name), `"started":true`) },
		time.Minute, 10*time.Millisecond)
	require.NoError(t, kill(s)) // the worker has not joined

	s = leadAgain(t, o)
	outlast(t, s)
	assert.Len(t, files.calls("start"), 2, "the leader waits for the worker that was started")
	w := newWorker(t, name)
	c := newClient(s)
	stop := w.beats(t, c)
	await(t, c, name)
	require.Eventually(t, func() bool { return storedWorker(t, s, name) == "" }, time.Minute, 10*time.Millisecond,
		"a worker that has joined is known by its node's record")
	stop()
	require.NoError(t, kill(s)) // the worker lives

	s = leadAgain(t, o)
	_ = wait.Sleep(patient(t), o.DeadAfter/4)
	c = newClient(s)
	stop = w.beats(t, c)
	await(t, c, name)
	outlast(t, s)
	assert.Len(t, files.calls("start"), 2, "the leader waits for the worker that an earlier leader knew")
	assert.Empty(t, files.calls("stop"), "one worker is to be kept")
	stop()
	require.NoError(t, kill(s))

	files.hold(t)
	o.WorkersLeast = 0
	s = leadAgain(t, o)
	c = newClient(s)
	stop = w.beats(t, c)
	files.awaitCalls(t, "stop", 1)
	stop()
	require.NoError(t, kill(s)) // the hook is running

	files.release(t)
	s = leadAgain(t, o)
	c = newClient(s)
	stop = w.beats(t, c)
	assert.Equal(t, []string{name, name}, files.awaitCalls(t, "stop", 2))
	stop()
	require.NoError(t, kill(s)) // the worker is gone

	s = leadAgain(t, o)
	l, err := s.leader()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.mu.fleet.Asked(name)
	}, time.Minute, 10*time.Millisecond, "the record of a worker that is gone may be forgotten")
	assert.Len(t, files.calls("start"), 2)
	require.NoError(t, s.Close())
}

// TestAWorkerThatNeverJoinsIsGivenUp: after the patience of two minutes, which the stored record says are over, the
// next leader starts a worker with another name.
func TestAWorkerThatNeverJoinsIsGivenUp(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	files, command := newHookFiles(t)
	s := leadAgain(t, o)
	l, err := s.leader()
	require.NoError(t, err)
	p := &pool{l: l}
	p.mu.Pool = workerpool.New(workerpool.Config{})
	overdue := record.PooledWorker{Started: true, Until: time.Now().Add(-time.Hour)}
	require.NoError(t, p.mu.Restore("pool-1-1", overdue, overdue.Until, 0))
	require.NoError(t, p.storeWorkers([]string{"pool-1-1", "pool-1-2"}), "a worker that is not expected has no record")
	require.NoError(t, s.Close())

	o.WorkerHook, o.WorkersLeast = command, 1
	s = leadAgain(t, o)
	name := files.awaitCalls(t, "start", 1)[0]
	assert.NotEqual(t, "pool-1-1", name)
	require.Eventually(t, func() bool { return storedWorker(t, s, "pool-1-1") == "" }, time.Minute, 10*time.Millisecond)
	assert.NotEmpty(t, storedWorker(t, s, name))
	require.NoError(t, s.Close())
}

// TestAWorkerOutlivesItsLeader: of three members the leader dies after the hook has started a worker, which works and
// has leases. The new leader starts none, keeps the leases, and stops the worker when the job is done. It takes long on
// a busy machine, because three members are started, and the old leader's lease has to lapse.
func TestAWorkerOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	files, command := newHookFiles(t)
	members, c := startClusterWith(t, 3, func(o *Options) {
		o.WorkerHook, o.WorkersMost, o.WorkerIdle = command, 4, 10*time.Second
	})
	defer func() { closeAll(t, members) }()
	_, k := attachToJob(t, c, &apiv1.JobSpec{Name: "job", Placement: "pool", TRowsPerSecond: 1000,
		Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	var names []string
	require.Eventually(t, func() bool {
		_, err := k.lease(1, 0, 0)
		require.NoError(t, err)
		names = files.calls("start")
		return len(names) > 0
	}, time.Minute, 10*time.Millisecond)
	require.Len(t, names, 1)
	w := newWorker(t, names[0])
	stop := w.beats(t, c)
	k.holdOn(t, names[0])
	held := k.leasesOn(names[0])

	at := leads(t, members)
	dead := members[at]
	members[at] = nil
	require.NoError(t, kill(dead))
	leads(t, members)
	r, err := k.lease(0, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Revoked)
	assert.Equal(t, held, k.leasesOn(names[0]), "the new leader adopts them")
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 400)
	assert.Equal(t, names, files.awaitCalls(t, "stop", 1))
	stop()
	started := files.calls("start")
	slices.Sort(started)
	assert.Equal(t, names, slices.Compact(started), "no other worker was started")
}
