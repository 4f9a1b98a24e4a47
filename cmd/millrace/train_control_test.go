package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote"
)

// filledDrive makes a drive that holds generated rows in two partitions. It returns the drive's URI and the folder with
// the partitions' files.
func filledDrive(t *testing.T, rows string) (drive, data string) {
	t.Helper()
	data = generate(t, "--rows", rows, "--partitions", "2")
	drive = "file:" + filepath.Join(t.TempDir(), "d0.flash")
	must(t, "drive", "create", drive+"?size=8MiB&slm=64MiB")
	must(t, "drive", "put", drive, data+"/part-00000.parquet", data+"/part-00001.parquet", "--progress", "none")
	return drive, data
}

// serveDrive runs a node with a filled drive until the test ends, and waits until the control plane knows that the
// drive's two partitions are ready.
func serveDrive(t *testing.T, control, drive string) {
	t.Helper()
	serveDriveAs(t, control, drive, node.TLSConfig{})
}

// serveDriveAs does what serveDrive does, with the node's identity and with flags that give the command its own.
func serveDriveAs(t *testing.T, control, drive string, tls node.TLSConfig, identity ...string) {
	t.Helper()
	a := startDriveNode(t, control, drive, tls, identity...)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
}

// startDriveNode does what serveDriveAs does; the caller closes the node.
func startDriveNode(t *testing.T, control, drive string, tls node.TLSConfig, identity ...string) *node.Agent {
	t.Helper()
	c := node.DefaultConfig()
	c.Name, c.Listen, c.Control, c.Measure = "n0", []string{"127.0.0.1:0"}, []string{control},
		node.Duration(time.Millisecond)
	c.Drives, c.TLS = []node.DriveConfig{{Name: "d0", URI: drive}}, tls
	a, err := node.Start(t.Context(), c, node.Options{})
	require.NoError(t, err)
	awaitJSON(t, func(list []nodeView) bool {
		return len(list) == 1 && list[0].State == "ready" && list[0].Partitions == 2
	}, append([]string{"nodes", "list", "--control", control}, identity...)...)
	return a
}

// TestTrainOnAService: a job over a control plane and a node of this process, stopped in the middle as by a crash, and
// resumed from its token.
func TestTrainOnAService(t *testing.T) {
	drive, _ := filledDrive(t, "2000")
	dir := t.TempDir()
	at := controlRun(t)
	serveDrive(t, at, drive)

	// Mini-batches that another run has acknowledged are not passed over in silence.
	plain := []string{"train", "--control", at, "--trainer-rows-per-second", "1e6", "--measure", "10ms", "--output",
		"json", "--progress", "none",
		"--pipeline", "rm1", "--batch", "100", "--split-batches", "2", "--name", "again"}
	must(t, append(plain, "--stop-after", "3")...)
	code, _, errs := millrace(t, plain...)
	require.Equal(t, exitFailed, code)
	for _, says := range []string{"another run", "3 of its 20", "--resume", "--checkpoint", "jobs cancel again-"} {
		require.Contains(t, errs, says)
	}
	var whole struct {
		Rows int `json:"rows"`
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, append(plain, "--resume")...)), &whole))
	require.Equal(t, 2000-3*100, whole.Rows)
	require.NoError(t, json.Unmarshal([]byte(must(t, plain...)), &whole))
	require.Equal(t, 2000, whole.Rows, "that job is done: this is another")

	abandonedAndResumed(t, at, dir)

	token := filepath.Join(dir, "rank0.token")
	flags := []string{
		"train", "--control", at, "--checkpoint", token, "--trainer-rows-per-second", "1e6", "--measure", "10ms",
		"--output", "json", "--progress", "none",
	}
	rows := func(more ...string) int {
		var r struct {
			Rows int `json:"rows"`
		}
		require.NoError(t, json.Unmarshal([]byte(must(t, append(flags, more...)...)), &r))
		return r.Rows
	}
	require.Equal(t, 3*100,
		rows("--pipeline", "rm1", "--batch", "100", "--split-batches", "2", "--name", "ads", "--stop-after", "3"))
	require.Equal(t, 2000-3*100, rows("--job", "ads"), "the rest")
	require.Eventually(t, func() bool {
		// the leader ends the job a moment after its last rank has said that it is through
		code, _, errs := millrace(t, append(flags, "--job", "ads")...)
		return code == exitFailed && strings.Contains(errs, "is done: every mini-batch was acknowledged")
	}, time.Minute, 50*time.Millisecond)
	code, _, errs = millrace(t, append(flags, "--pipeline", "rm1", "--batch", "100", "--split-batches", "2")...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "no mini-batch is left", "a new job resumes from the token")
	code, _, errs = millrace(t, append(flags, "--pipeline", "rm1", "--batch", "50")...)
	require.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "another job")
	b, err := os.ReadFile(token)
	require.NoError(t, err)
	b[20] ^= 1
	require.NoError(t, os.WriteFile(token, b, 0o644))
	code, _, errs = millrace(t, append(flags, "--pipeline", "rm1", "--batch", "100")...)
	require.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "rank0.token")
}

// TestReportsAgreeWithTheLedger compares every figure of jobs show, of jobs list and of the ranks' reports with the
// mini-batches that the ledger counts. The job has two epochs, two ranks and rows that are left out, and its only node
// dies and comes back.
func TestReportsAgreeWithTheLedger(t *testing.T) {
	drive, _ := filledDrive(t, "2000")
	s, err := control.Start(t.Context(), control.Options{Data: t.TempDir(), Listen: "127.0.0.1:0",
		LeaderTTL: time.Second, Tick: 20 * time.Millisecond, Election: 200 * time.Millisecond,
		Beat: 100 * time.Millisecond, DeadAfter: 700 * time.Millisecond, ScaleEvery: time.Hour,
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	require.NoError(t, s.WaitReady(t.Context()))
	at := s.URL()
	a := startDriveNode(t, at, drive, node.TLSConfig{})
	must(t, "jobs", "submit", "--control", at, "--pipeline", "rm1", "--batch", "300", "--split-batches", "1", "--tail",
		"drop", "--name", "two", "--epochs", "2", "--ranks", "2", "--t", "1", "--wait")
	show := func() jobView {
		return decode[jobView](t, must(t, "jobs", "show", "two", "--control", at, "--output", "json"))
	}
	await := func(is func(jobView) bool) { awaitJSON(t, is, "jobs", "show", "two", "--control", at) }
	assert.Contains(t, show().Allocation, "1 of 1 drives sustain the trainer")

	client, err := remote.Dial(remote.Options{Control: []string{at}, Patience: time.Minute})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	paused, goOn := make(chan struct{}), make(chan struct{})
	var reports [2]*trainmgr.Report
	ended := make(chan error)
	for rank := range reports {
		train := func() (err error) {
			job, err := client.Attach(t.Context(), "two", remote.AttachOptions{Rank: uint32(rank)})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, job.Close()) }()
			taken := 0
			for _, err := range job.MiniBatches(t.Context()) {
				if err != nil {
					return err
				}
				if taken++; taken == 5 { // the second of three in the second epoch
					paused <- struct{}{}
					<-goOn
				}
			}
			reports[rank], err = job.Report(t.Context())
			return err
		}
		go func() { ended <- train() }()
	}
	<-paused
	<-paused
	require.NoError(t, a.Close())
	await(func(v jobView) bool { return v.Drives == 0 })
	assert.Contains(t, show().Allocation, "0 of the 1 drives")
	serveDrive(t, at, drive)
	close(goOn)
	require.NoError(t, errors.Join(<-ended, <-ended))
	await(func(v jobView) bool { return v.State == "done" })

	const epochRows, leftOut = 1800, 200 // two partitions have 1,000 rows each, and a mini-batch has 300
	v := show()
	assert.EqualValues(t, 1, v.Epoch)
	assert.EqualValues(t, []any{uint64(6), uint64(6), int64(epochRows + leftOut), int64(leftOut), int64(2 * epochRows)},
		[]any{v.MiniBatches, v.Delivered, v.Rows, v.LeftOut, v.AllRows})
	for rank, r := range v.Ranks {
		assert.EqualValues(t, []uint64{3, 3}, []uint64{r.MiniBatches, r.Delivered})
		assert.EqualValues(t, 2*r.Delivered, reports[rank].MiniBatches)
		assert.EqualValues(t, 2*epochRows/2, reports[rank].Rows)
		assert.EqualValues(t, leftOut, reports[rank].LeftOutRows)
		require.Len(t, reports[rank].PerDrive, 1)
		d := reports[rank].PerDrive[0]
		assert.EqualValues(t, []any{"n0/d0", reports[rank].Rows, reports[rank].MiniBatches}, []any{d.Name, d.Rows,
			d.MiniBatches})
		var b strings.Builder
		printReport(&b, nativeReport(reports[rank]))
		assert.Contains(t, b.String(), "left out\t200 rows of each epoch")
		assert.Contains(t, b.String(), "\t1800\t")
	}
	text := must(t, "jobs", "show", "two", "--control", at)
	for _, says := range []string{`epoch +2 of 2`, `delivered +6 of 6 mini-batches of the epoch \(100.0%\)`,
		`rows +2000 in each epoch`, `left out +200 rows of each epoch`, `delivered in all epochs +3600 rows`} {
		assert.Regexp(t, says, text)
	}
	assert.Regexp(t, `done +2 of 2 +100.0% +200 `, must(t, "jobs", "list", "--control", at))
}

// TestTrainSharesWithItsOwnCPUs runs a rank whose own CPUs make half of its splits, from the same partitions as files,
// and then one whose share a policy decides.
func TestTrainSharesWithItsOwnCPUs(t *testing.T) {
	drive, data := filledDrive(t, "6000")
	at := controlRun(t)
	serveDrive(t, at, drive)
	train := []string{"train", "--control", at, "--trainer-rows-per-second", "1e6", "--measure", "10ms", "--output",
		"json", "--progress", "none", "--pipeline", "rm1", "--batch", "100", "--split-batches", "1"}
	conf := file(t, "worker.yaml", "threads: 1\nmeasure: 1ms\n")
	for _, policy := range []string{"0.5", "extended"} {
		var r struct {
			Rows int `json:"rows"`
		}
		out := must(t, append(train, "--offload", policy, "--local", data, "--own-worker", conf, "--name", "shared")...)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		require.Equal(t, 6000, r.Rows)
		var v jobView
		require.NoError(t, json.Unmarshal([]byte(must(t, "jobs", "show", "--control", at, "shared", "--output",
			"json")), &v))
		assert.Equal(t, policy, v.Offload)
		if policy != "0.5" {
			continue
		}
		assert.InDelta(t, 30, float64(v.SplitsOwn), 3, "half of 60, of which some may come back")
		require.Len(t, v.Ranks, 1)
		assert.InDelta(t, 0.5, v.Ranks[0].Share, 0)
		assert.Positive(t, v.Ranks[0].T)
		text := must(t, "jobs", "show", "--control", at, "shared")
		assert.Contains(t, text, "share elsewhere")
	}
	code, _, errs := millrace(t, append(train, "--local", data, "--name", "unshared")...)
	require.Equal(t, exitUsage, code, errs)
	assert.Contains(t, errs, "--offload")
	code, _, errs = millrace(t, append(train, "--offload", "half", "--name", "unshared2")...)
	require.NotZero(t, code)
	assert.Contains(t, errs, "from 0 to 1")
}

// TestTrainOverItsOwnFiles trains under a control plane that has no node: the rank's own CPUs make every split of the
// files of --local.
func TestTrainOverItsOwnFiles(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	must(t, "dataset", "generate", "--model", "rm1", "--rows", "2000", "--partitions", "2", "--out", data)
	at := controlRun(t)
	train := []string{"train", "--control", at, "--trainer-rows-per-second", "1e6", "--measure", "10ms", "--output",
		"json", "--progress", "none", "--pipeline", "rm1", "--batch", "100", "--split-batches", "1", "--name", "alone"}
	for _, how := range [][]string{{"--offload", "extended"}, {"--placement", "trainer"}} {
		var r struct {
			Rows int `json:"rows"`
		}
		out := must(t, slices.Concat(train, how, []string{"--local", data})...)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		assert.Equal(t, 2000, r.Rows, how)
	}
	code, _, errs := millrace(t, append(train, "--offload", "1")...)
	require.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "no live node holds any")
}

// TestTrainKeepsItsProfile runs a rank that a policy decides for. Its first job measures FastFlow's metrics, and the
// next one, of the same model, pipeline and workers, takes them from the store: it measures nothing, and it says so. A
// job that is too short for a profile takes them too. Another model is measured.
func TestTrainKeepsItsProfile(t *testing.T) {
	drive, data := filledDrive(t, "6000")
	at := controlRun(t)
	serveDrive(t, at, drive)
	metrics := filepath.Join(t.TempDir(), "metrics.json")
	conf := file(t, "worker.yaml", "threads: 1\nmeasure: 1ms\n")
	train := func(name, model, epochs, steps string) (v rankView, notes, said string) {
		t.Helper()
		code, out, errs := millrace(t, "train", "--control", at, "--trainer-rows-per-second", "5e3", "--measure",
			"10ms", "--output", "json", "--progress", "plain", "--pipeline", "rm1", "--batch", "20", "--split-batches",
			"2", "--epochs", epochs, "--offload", "extended", "--local", data, "--own-worker", conf, "--name", name,
			"--offload-model", model, "--offload-metrics", metrics, "--stop-after", steps)
		require.Zero(t, code, errs)
		var r struct {
			Notes       []string           `json:"notes"`
			SplitShares remote.SplitShares `json:"split_shares"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		if epochs != "1" {
			assert.Positive(t, r.SplitShares.ProfileShare)
			assert.Positive(t, r.SplitShares.OwnRows+r.SplitShares.OthersRows)
		}
		var job jobView
		require.NoError(t, json.Unmarshal([]byte(must(t, "jobs", "show", "--control", at, name, "--output", "json")),
			&job))
		require.Len(t, job.Ranks, 1)
		return job.Ranks[0], strings.Join(r.Notes, "\n"), errs
	}
	v, notes, said := train("first", "dlrm", "40", "2500") // of 12000 mini-batches: 48 s at T, of which it takes 10 s
	require.Equal(t, "measured", v.ProfileFrom, notes)
	assert.Positive(t, v.ProfileSeconds)
	assert.Positive(t, v.ProfileShare)
	assert.LessOrEqual(t, v.ProfileShare, 1.0)
	assert.Contains(t, notes, "the profile took")
	assert.NotContains(t, said, "nothing is measured")
	for _, name := range []string{"second", "short"} {
		epochs := map[string]string{"second": "20", "short": "1"}[name]
		v, notes, said = train(name, "dlrm", epochs, "100")
		assert.Equal(t, "stored", v.ProfileFrom, name)
		assert.Contains(t, notes, "stored by an earlier job", name)
		assert.Contains(t, said, "nothing is measured", name)
		assert.Contains(t, must(t, "jobs", "show", "--control", at, name), "stored, ", name)
	}
	v, _, _ = train("other", "forest", "1", "10")
	assert.Empty(t, v.ProfileFrom, "it is too short to be measured")
	code, _, errs := millrace(t, "train", "--control", at, "--pipeline", "rm1", "--offload-metrics", metrics)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--offload-model")
	code, _, errs = millrace(t, "train", "--control", at, "--pipeline", "rm1", "--name", "none", "--offload-model", "m")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "no use of this rank's own CPUs")
}

// abandonedAndResumed checks that a job to which no trainer comes back ends by itself, and that another job goes on
// with the rest of it.
func abandonedAndResumed(t *testing.T, at, dir string) {
	t.Helper()
	trains := func(name string, more ...string) int {
		var r struct {
			Rows int `json:"rows"`
		}
		out := must(t,
			append([]string{
				"train", "--control", at, "--job", name, "--trainer-rows-per-second", "1e6", "--measure", "10ms",
				"--output", "json", "--progress", "none",
			}, more...)...)
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r.Rows
	}
	submit := func(name string, more ...string) {
		must(t, append([]string{"jobs", "submit", "--control", at, "--pipeline", "rm1", "--batch", "100",
			"--split-batches", "2", "--name", name, "--wait"}, more...)...)
	}
	submit("left", "--abandon-after", "1s")
	require.Equal(t, 3*100, trains("left", "--stop-after", "3"))
	list := must(t, "jobs", "list", "--control", at)
	assert.Contains(t, list, "last contact")
	assert.Contains(t, list, "0 of 1")
	awaitJSON(t, func(v jobView) bool {
		return strings.HasPrefix(v.State, "abandoned: no rank has called since ") && v.LastContact != "" &&
			len(v.Ranks) > 0 && !v.Ranks[0].Attached
	}, "jobs", "show", "left", "--control", at)
	code, _, errs := millrace(t, "train", "--control", at, "--job", "left", "--progress", "none")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "the job was abandoned")
	token := filepath.Join(dir, "left.token")
	assert.Contains(t, must(t, "jobs", "checkpoint", "left", "--control", at, "--out", token),
		"it acknowledges 3 mini-batches of epoch 1")
	submit("rest", "--resume", token)
	assert.Equal(t, 2000-3*100, trains("rest"))
	code, _, errs = millrace(t, "jobs", "checkpoint", "rest", "--control", at)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--out is wanted")
}
