package endtoend

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestSoak kills processes at random, with kill -9, in any order: storage nodes, workers without data, the leader, and
// trainers. It starts them again. Each trainer resumes from its own token and is trained once on every mini-batch of
// its share, with the bytes of an undisturbed execution. The test runs one job after another for 20 s, or as long as
// MILLRACE_SOAK says. MILLRACE_SEED repeats the choices of an execution. It takes longer than those 20 s, because the
// last job goes on to its end.
func TestSoak(t *testing.T) {
	length := 20 * time.Second
	if s := os.Getenv("MILLRACE_SOAK"); s != "" {
		var err error
		length, err = time.ParseDuration(s)
		require.NoError(t, err)
	} else if testing.Short() {
		t.Skip("short")
	}
	seed := rand.Uint64()
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("MILLRACE_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	data := files(t, 1500, 1401, 900, 1049, 1250)
	want := onOneMachine(t, data, 2)
	members, urls := startMembers(t, 3)
	var nodes []*process
	for i, held := range deal(data, 2) {
		c := nodeConfig([]string{"n0", "n1"}[i], urls, makeDrive(t, "file", held))
		nodes = append(nodes, start(t, role{Node: &c}))
	}
	var workers []*process
	for _, name := range []string{"w0", "w1"} {
		c := workerConfig(name, urls)
		workers = append(workers, start(t, role{Worker: &c}))
	}
	c := dial(t, urls...)
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	kills := map[string]int{}
	end := time.Now().Add(length)
	for jobs := 0; jobs == 0 || time.Now().Before(end); jobs++ {
		order := []string{"fastest", "deterministic"}[jobs%2]
		st := submitWhole(t, c, want, len(data), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Epochs: 2,
			Order: order, Ranks: 2, RankTail: "keep", TRowsPerSecond: 1e12, // more than the drives make
			Placement: []string{"", "pool", "held"}[jobs%3]})
		var models []string
		var trainers []*process
		for rank := range uint32(2) {
			path := filepath.Join(t.TempDir(), "model")
			models = append(models, path)
			trainers = append(trainers, start(t, role{Trainer: &trainer{Control: urls, Job: st.Id, Rank: rank,
				Model: path, Every: 1 + rng.IntN(9), Step: 15 * time.Millisecond}}))
		}
		for {
			running := 0
			for i, tr := range trainers {
				select {
				case <-tr.done:
					var exit *exec.ExitError
					if errors.As(tr.err, &exit) {
						t.Fatalf("trainer %d: %v", i, tr.err)
					}
				default:
					running++
				}
			}
			if running == 0 {
				break
			}
			time.Sleep(time.Duration(200+rng.IntN(1500)) * time.Millisecond)
			switch i := rng.IntN(2); rng.IntN(5) {
			case 0:
				kills["node"]++
				nodes[i].kill()
				nodes[i] = start(t, nodes[i].role)
			case 1:
				kills["leader"]++
				_, err := c.List(t.Context())
				require.NoError(t, err)
				l := leaderOf(t, c, members)
				members[l].kill()
				members[l] = start(t, members[l].role)
			case 2:
				kills["trainer"]++
				select {
				case <-trainers[i].done:
				default:
					trainers[i].kill()
					trainers[i] = start(t, trainers[i].role)
				}
			case 3: // everything at once
				kills["all"]++
				nodes[0].kill()
				nodes[1].kill()
				members[0].kill()
				workers[0].kill()
				nodes[0], members[0], nodes[1] = start(t, nodes[0].role), start(t, members[0].role), start(t,
					nodes[1].role)
				workers[0] = start(t, workers[0].role)
			case 4:
				kills["worker"]++
				workers[i].kill()
				workers[i] = start(t, workers[i].role)
			}
		}
		check(t, want, resultOf(t, digestOf(t, c, st.Id), models...), false)
		t.Logf("job %d, %s: %v kills so far", jobs, order, kills)
	}
}

// submitWhole submits a job over all partitions. A job has the partitions that are known when it is submitted, and a
// node that was just killed may not have reported its partitions yet.
func submitWhole(t testing.TB, c *remote.Client, want *result, partitions int, spec *apiv1.JobSpec) *apiv1.JobStatus {
	t.Helper()
	var digest [32]byte
	for name := range want.sums {
		digest = name.Job
	}
	for {
		awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, partitions)
		st, err := c.Submit(t.Context(), spec)
		if err == nil && [32]byte(st.Digest) == digest {
			return st
		}
		if err == nil {
			err = c.Cancel(t.Context(), st.Id)
			require.NoError(t, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func digestOf(t testing.TB, c *remote.Client, id string) [32]byte {
	t.Helper()
	st := awaitDone(t, c, id)
	require.Len(t, st.Digest, 32)
	return [32]byte(st.Digest)
}

// awaitDone waits until a job has ended well.
func awaitDone(t testing.TB, c *remote.Client, id string) (st *apiv1.JobStatus) {
	t.Helper()
	// the leader may have died between the last words and the end
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		st, err = c.Get(t.Context(), id)
		require.NoError(t, err)
		if st.State == "done" {
			return st
		}
	}
	require.FailNow(t, "the job does not end", "%v", st)
	return nil
}
