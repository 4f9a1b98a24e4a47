package endtoend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	summaries "github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// statisticsDocument names statistics of filled and scaled values and of labels by folds, of the rows that a filter
// chooses.
const statisticsDocument = `name: scaled
batch: 50
label: {column: label}
dense:
  - {columns: [int_0], ops: [fill_null: 0, log: {add: 1}, normalize: {statistics: train}]}
  - columns: [cat_0]
    as: mean_cat
    ops: [positive_modulus: 70, target_encoding: {statistics: train, folds: 3, seed: 4}]
statistics: {train: {}}
filter: {all: [{column: int_0, ge: 1}, {sampling: {key: row, rate: 0.7, salt: 3}}]}
`

// clusterStatistics is a pass over some partitions of a cluster.
type clusterStatistics struct {
	summaries.Pass
	Partitions, Exclude []string
}

func (p *clusterStatistics) Run(ctx context.Context, c *remote.Client) (*summaries.Report, error) {
	return p.Pass.Run(ctx, &remote.PassSource{Client: c, Partitions: p.Partitions, Exclude: p.Exclude})
}

// summarize makes the summary of all columns and writes it to Out.
func (r *reducer) summarize(ctx context.Context, c *remote.Client) error {
	pass := statisticsInto(r.Out, r.Work)
	pass.Progress = func(passes.Progress) { time.Sleep(3 * time.Millisecond) } // the test kills it
	_, err := pass.Run(ctx, c)
	return err
}

// statisticsInto returns a pass over all columns that writes the summary to a file, and its state after every
// mini-batch.
func statisticsInto(out, work string) *clusterStatistics {
	return &clusterStatistics{Pass: summaries.Pass{Batch: 50,
		Options: passes.Options{Work: work, Every: time.Nanosecond, QueueBytes: 100_000, Logger: logger()},
		Finished: func(s *summary.Summary) error {
			b, err := s.Encode()
			if err != nil {
				return err
			}
			return wholefile.Write(out, b)
		}}}
}

// localSummary returns the file of a summary as one machine makes it of partitions.
func localSummary(t testing.TB, pass *summaries.Pass, data map[string][]byte) []byte {
	t.Helper()
	made, err := pass.Run(t.Context(), &local.PassSource{Storage: openHere(t, data)})
	require.NoError(t, err)
	b, err := made.Encode()
	require.NoError(t, err)
	return b
}

// keptMiniBatches returns how many mini-batches the parts of a work folder hold.
func keptMiniBatches(work string) int {
	_, miniBatches := keptInWork(work)
	return int(miniBatches)
}

// TestSummariesOfTheClustersData: one, two and five nodes with replicas make the bytes of one machine, and leave no
// work folder.
func TestSummariesOfTheClustersData(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049, 2600) // the last one has more distinct values than are counted exactly
	want := localSummary(t, &summaries.Pass{}, data)
	whole := localSummary(t, &summaries.Pass{Columns: []string{"list_0", "cat_0"}, WholeOnly: true}, data)
	spec, err := pipeline.Parse([]byte(statisticsDocument))
	require.NoError(t, err)
	ofPipeline := localSummary(t, &summaries.Pass{Pipeline: spec, Name: "train"}, data)
	for _, n := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			_, _, c := someNodes(t, n, data)
			dir := t.TempDir()
			out := filepath.Join(dir, "out")
			pass := statisticsInto(out, filepath.Join(dir, "work"))
			var rows, seen int64
			var last passes.Progress
			pass.Started = func(all, taken int64) { rows = all - taken }
			pass.Progress = func(p passes.Progress) { seen, last = seen+p.Rows, p }
			made, err := pass.Run(t.Context(), c)
			require.NoError(t, err)
			got, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got))
			assert.EqualValues(t, 1500+1401+900+1049+2600, rows)
			assert.Equal(t, rows, seen)
			assert.Equal(t, last.AllSplits, last.Splits)
			assert.Zero(t, made.Resumed)
			assert.Equal(t, rows, made.Rows)
			assert.Positive(t, made.ReceivedBytes)
			assert.NoDirExists(t, pass.Work)
			job, err := c.Get(t.Context(), made.JobName)
			require.NoError(t, err)
			awaitDone(t, c, job.Id)

			some := statisticsInto(out, "")
			some.Columns, some.WholeOnly, some.Batch = []string{"list_0", "cat_0"}, true, 0
			_, err = some.Run(t.Context(), c)
			require.NoError(t, err)
			got, err = os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, string(whole), string(got))

			passing := statisticsInto(out, pass.Work)
			passing.Pipeline, passing.Name = spec, "train"
			_, err = passing.Run(t.Context(), c)
			require.NoError(t, err)
			got, err = os.ReadFile(out)
			require.NoError(t, err)
			assert.Equal(t, string(ofPipeline), string(got))

			// A job over a partition that the summary does not cover makes folds of its own there.
			fewer := maps.Clone(data)
			left := names(data)[1]
			delete(fewer, left)
			known, err := summary.Read(localSummary(t, &summaries.Pass{Pipeline: spec, Name: "train"}, fewer))
			require.NoError(t, err)
			bound, err := spec.BindStatistics("train", known, summary.Digest{1})
			require.NoError(t, err)
			_, err = c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: bound.JSON(), Plan: plan()})
			require.ErrorContains(t, err, `"train" was made of other partitions than `+left+" (1 of 5)")
		})
	}
}

// TestAKilledSummary checks that a pass that was killed many times makes the bytes of one machine.
func TestAKilledSummary(t *testing.T) {
	data := files(t, 3500, 3401, 1900, 2049)
	dir := t.TempDir()
	r := reducer{Out: filepath.Join(dir, "out.summary"), Work: filepath.Join(dir, "work")}
	killAPass(t, r, data, keptMiniBatches, 10)
	got, err := os.ReadFile(r.Out)
	require.NoError(t, err)
	assert.Equal(t, string(localSummary(t, &summaries.Pass{}, data)), string(got))
}

// TestAWorkFolderOfASummary: a folder is refused by a pass over other columns or partitions, by that of a vocabulary
// and by the same pass over other data; damaged states are an error that names the folder; the pass that began it goes
// on, also after its caller could not write the file.
func TestAWorkFolderOfASummary(t *testing.T) {
	data := files(t, 1500, 1401)
	want := localSummary(t, &summaries.Pass{}, data)
	s, nodes, c := someNodes(t, 2, data)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	pass := statisticsInto(out, filepath.Join(dir, "work"))
	stopBehind := func(number int) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		pass.Progress = func(passes.Progress) {
			if keptMiniBatches(pass.Work) >= number {
				cancel(errStop)
			}
		}
		defer func() { pass.Progress = nil }()
		_, err := pass.Run(ctx, c)
		return err
	}
	require.ErrorIs(t, stopBehind(35), errStop)
	require.GreaterOrEqual(t, keptMiniBatches(pass.Work), 35)
	parts, err := filepath.Glob(filepath.Join(pass.Work, "part-*"))
	require.NoError(t, err)
	require.Greater(t, len(parts), 1, "the states of a partition that has ended, and of the open one")

	for what, change := range map[string]func(p *clusterStatistics){
		"set of statistics":  func(p *clusterStatistics) { p.Columns = []string{"cat_0"} },
		"choice of":          func(p *clusterStatistics) { p.Partitions = []string{"part-00000*"} },
		"to leave out":       func(p *clusterStatistics) { p.Exclude = []string{"part-00000*"} },
		"pipeline before":    func(p *clusterStatistics) { p.Batch = 51 },
		"an option below 0:": func(p *clusterStatistics) { p.Every = -1 },
	} {
		other := *pass
		change(&other)
		_, err := other.Run(t.Context(), c)
		var refused *passes.OtherPassError
		if errors.Is(err, passes.ErrOptions) {
			continue
		}
		require.ErrorAs(t, err, &refused, what)
	}
	vocabulary := reduction(t, summaryDocument, "seen")
	vocabulary.Work = pass.Work
	_, err = vocabulary.Run(t.Context(), c)
	var refused *passes.OtherPassError
	require.ErrorAs(t, err, &refused)

	for _, path := range parts {
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		damaged := slices.Clone(good)
		damaged[len(damaged)/2] ^= 1
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		_, err = pass.Run(t.Context(), c)
		require.ErrorIs(t, err, passes.ErrWork, path)
		require.ErrorContains(t, err, pass.Work, path)
		require.NoError(t, os.WriteFile(path, good, 0o600))
	}

	more := startNode(t, nodeConfig("n9", []string{s.URL()}, makeDrive(t, "mem", map[string][]byte{
		"part-00009.parquet": files(t, 300)["part-00000.parquet"]})), node.Options{})
	nodes["n9"] = true
	awaitPartitions(t, c, nodes, len(data)+1)
	_, err = pass.Run(t.Context(), c)
	require.ErrorIs(t, err, dataset.ErrOtherJob)
	require.NoError(t, more.Close())
	_, err = c.Drain(t.Context(), "n9", true) // it is gone for good
	require.NoError(t, err)

	finished := pass.Finished
	pass.Finished = func(*summary.Summary) error { return errStop } // as of a full disk
	require.Eventually(t, func() bool {
		_, err := pass.Run(t.Context(), c)
		return errors.Is(err, errStop)
	}, time.Minute, 100*time.Millisecond)
	require.NoFileExists(t, out)
	pass.Finished = finished
	made, err := pass.Run(t.Context(), c)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, made.Resumed, int64(35*50))
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}
