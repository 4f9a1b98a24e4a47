package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// jaggedRow is a row of which two keys are lists.
type jaggedRow struct {
	Label int32   `parquet:"label"`
	Cat   int64   `parquet:"cat"`
	Words []int64 `parquet:"words"`
	Tags  []int64 `parquet:"tags"`
}

// jaggedDoc deduplicates two keys together and another by itself.
const jaggedDoc = "name: p\nbatch: 10\nlabel: {column: label}\nsparse:\n  - columns: [cat]\n" +
	"  - {columns: [words, tags], deduplicate: true}\n"

// drawRows draws the rows of a partition. Their lists are often those of an earlier row.
func drawRows(rng *rand.Rand, first, n int) []jaggedRow {
	rows := make([]jaggedRow, n)
	for i := range rows {
		lists := rng.Int64N(6)
		rows[i] = jaggedRow{Label: int32(rng.IntN(2)), Cat: int64(first + i), Words: make([]int64, lists%3),
			Tags: make([]int64, lists/2)}
		for k := range rows[i].Words {
			rows[i].Words[k] = 10*lists + int64(k)
		}
		for k := range rows[i].Tags {
			rows[i].Tags[k] = 100*lists + int64(k)
		}
	}
	return rows
}

// inRowGroups makes a partition of row groups of odd sizes, each at most largest rows.
func inRowGroups(t *rapid.T, rng *rand.Rand, rows []jaggedRow, largest int) []byte {
	var b bytes.Buffer
	w := pq.NewGenericWriter[jaggedRow](&b)
	for len(rows) > 0 {
		n := min(1+rng.IntN(largest), len(rows))
		_, err := w.Write(rows[:n])
		require.NoError(t, err)
		require.NoError(t, w.Flush())
		rows = rows[n:]
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// batchOfRows makes the mini-batch of rows, as it is delivered, from the definition of its tensors.
func batchOfRows(t *rapid.T, schema *tensor.Schema, name tensor.Name, rows []jaggedRow) *tensor.MiniBatch {
	var values []int64
	var lengths []int32
	for _, key := range []func(jaggedRow) []int64{
		func(r jaggedRow) []int64 { return []int64{r.Cat} },
		func(r jaggedRow) []int64 { return r.Words },
		func(r jaggedRow) []int64 { return r.Tags },
	} {
		for _, r := range rows {
			values, lengths = append(values, key(r)...), append(lengths, int32(len(key(r))))
		}
	}
	m, err := tensor.Make(schema, len(rows), len(values))
	require.NoError(t, err)
	m.Name = name
	copy(m.Values64, values)
	copy(m.Lengths, lengths)
	for i, r := range rows {
		m.Label[i] = float32(r.Label)
	}
	m, err = m.Deduplicate()
	require.NoError(t, err)
	return m
}

// madeJob is a job over generated partitions on one drive.
type madeJob struct {
	manager *Manager
	job     *api.Job
	plan    *dataset.Plan
	drive   string
	rows    [][]jaggedRow // by partition of the manifest, those that the job is over
}

// drawJob draws partitions, a drive and an engine for them, a plan and a filter.
func drawJob(t *testing.T, rt *rapid.T) *madeJob {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed of the rows"), 1))
	contents, rows := map[string][]byte{}, map[string][]jaggedRow{}
	largest := rapid.SampledFrom([]int{5, 37, 200}).Draw(rt, "rows of a row group")
	for i := range rapid.IntRange(1, 5).Draw(rt, "partitions") {
		name := fmt.Sprintf("%c.parquet", 'a'+i)
		rows[name] = drawRows(rng, 1000*i, rapid.SampledFrom([]int{0, 1, 9, 40, 130}).Draw(rt, "rows"))
		contents[name] = inRowGroups(rt, rng, rows[name], largest)
	}
	j := &madeJob{drive: "files"}
	engine := rapid.SampledFrom([]string{"vendor", "standard", "cpu", "reference", "rtl"}).Draw(rt, "engine")
	var d *Drive
	var err error
	switch engine {
	case "vendor", "standard":
		j.drive = onDrive(t, contents) + "?slm=16MiB&commands=" + engine
		d, err = OpenDrive(t.Context(), j.drive, DriveOptions{})
		require.NoError(rt, err)
	default:
		d = files(t, write(t, contents), DriveOptions{Engine: Engine(engine), Simulate: cpu.NewReference})
	}
	j.manager, err = NewManager(Options{}, d)
	require.NoError(rt, err)
	data, err := j.manager.Dataset(t.Context())
	require.NoError(rt, err)
	for _, p := range data.Manifest.Partitions {
		j.rows = append(j.rows, rows[p.Name])
	}
	spec, err := pipeline.Parse([]byte(jaggedDoc))
	require.NoError(rt, err)
	var passing []int64
	if rapid.Bool().Draw(rt, "filter") {
		j.filter(rt, rng, data, spec)
		passing = spec.Selection.Counts()
	}
	o := dataset.Options{Batch: rapid.IntRange(1, 45).Draw(rt, "batch"),
		Boundary:     rapid.SampledFrom([]dataset.Boundary{dataset.BoundaryNone, 0}).Draw(rt, "boundary"),
		Tail:         rapid.SampledFrom([]dataset.Tail{dataset.KeepTail, dataset.DropTail}).Draw(rt, "tail"),
		Shuffle:      dataset.Shuffle(rapid.IntRange(0, 2).Draw(rt, "shuffle")),
		SplitBatches: rapid.IntRange(1, 6).Draw(rt, "split batches"), Seed: rapid.Uint64().Draw(rt, "seed"), Epoch: 3}
	o.Window = rapid.IntRange(1, o.SplitBatches).Draw(rt, "window")
	j.plan, err = dataset.NewSelectedPlan(data.Manifest, passing, o)
	require.NoError(rt, err)
	j.job = &api.Job{Digest: dataset.Digest{1}, Pipeline: spec, Plan: j.plan.Options()}
	require.NoError(rt, j.manager.Prepare(t.Context(), j.job))
	return j
}

// filter lets any half of the rows pass, and their neighbours in some places.
func (j *madeJob) filter(t *rapid.T, rng *rand.Rand, data *api.Dataset, spec *pipeline.Spec) {
	filtered, err := pipeline.Parse([]byte(jaggedDoc + "filter: {column: cat, ge: 0}\n"))
	require.NoError(t, err)
	*spec = *filtered
	resolved, err := data.Resolve(spec)
	require.NoError(t, err)
	b, err := selection.NewBuilder(data.Manifest, resolved.FilterDigest())
	require.NoError(t, err)
	for i, rows := range j.rows {
		var kept []jaggedRow
		passes := make([]bool, len(rows))
		for k := range passes {
			if passes[k] = k%50 < 20 || rng.IntN(2) == 0; passes[k] {
				kept = append(kept, rows[k])
			}
		}
		require.NoError(t, b.Add(i, 0, passes))
		j.rows[i] = kept
	}
	spec.Selection, err = b.Finish()
	require.NoError(t, err)
}

// sequence returns the rows of each mini-batch, by the definition of the plan: consecutive rows of the splits in their
// order, whose windows are permuted.
func (j *madeJob) sequence(t *rapid.T) (batches [][]jaggedRow) {
	o := j.plan.Options()
	var open []jaggedRow
	for split := range j.plan.All() {
		rows := j.rows[split.Partition][split.First:][:split.Rows]
		if o.Boundary == dataset.BoundaryPartition {
			open = nil
		}
		for number := split.FirstFragment; number < split.End(); {
			window, err := j.plan.Window(number)
			require.NoError(t, err)
			permutation, err := j.plan.RowPermutation(window)
			require.NoError(t, err)
			for i := range window.Rows {
				from := i
				if permutation != nil {
					from = int(permutation[i])
				}
				if open = append(open, rows[from]); len(open) == 1 {
					batches = append(batches, nil)
				}
				batches[len(batches)-1] = open
				if len(open) == o.Batch {
					open = nil
				}
			}
			rows, number = rows[window.Rows:], number+uint64(window.Fragments)
		}
	}
	return batches
}

// fragments returns copies of the fragments of a split, from an index on.
func (j *madeJob) fragments(t *rapid.T, split dataset.Split, from int) (list []*tensor.MiniBatch) {
	s, err := j.manager.Open(context.Background(), api.SplitRequest{Job: j.job.Digest, Drive: j.drive, Epoch: 3,
		Split: split, From: from})
	require.NoError(t, err)
	for {
		mb, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			require.NoError(t, s.Close())
			return list
		}
		require.NoError(t, err)
		list = append(list, mb.Clone())
		mb.Release()
	}
}

// TestFragmentsAreTheSequence makes the fragments of all splits of random plans on every engine. In the order of their
// numbers they are the rows of the sequence, and they join into the mini-batches of the plan. A stream that begins at
// any fragment gives the same bytes as one from the first.
func TestFragmentsAreTheSequence(t *testing.T) {
	var several, wholes int
	rapid.Check(t, func(rt *rapid.T) {
		j := drawJob(t, rt)
		defer func() { require.NoError(rt, j.manager.Close()) }()
		var all []*tensor.MiniBatch
		for split := range j.plan.All() {
			list := j.fragments(rt, split, 0)
			require.Len(rt, list, split.Fragments)
			from := rapid.IntRange(0, split.Fragments-1).Draw(rt, "from")
			rest := j.fragments(rt, split, from)
			require.Len(rt, rest, split.Fragments-from)
			for i, mb := range rest {
				require.Empty(rt, tensor.Diff(list[from+i], mb), "fragment %d of %v, opened at %d", from+i, split, from)
			}
			all = append(all, list...)
		}
		sequence := j.sequence(rt)
		require.EqualValues(rt, j.plan.MiniBatches(), len(sequence))
		for number, rows := range sequence {
			mb, err := j.plan.MiniBatch(uint64(number))
			require.NoError(rt, err)
			parts := all[mb.FirstFragment:][:mb.Fragments]
			want := batchOfRows(rt, parts[0].Schema, tensor.Name{Job: [32]byte(j.job.Digest), Epoch: 3,
				Number: uint64(number)}, rows)
			got := parts[0]
			if len(parts) > 1 {
				several++
				got, err = new(tensor.Memory).Join(parts)
				require.NoError(rt, err)
			} else {
				wholes++
			}
			require.Empty(rt, tensor.Diff(want, got), "mini-batch %d of %v", number, j.plan)
		}
	})
	require.Positive(t, several, "some mini-batches have several fragments")
	require.Positive(t, wholes, "some mini-batches have one fragment")
}

// TestDrivesThatMakeOtherRows opens splits on a drive that makes a fragment of more or fewer rows than the plan gives
// it.
func TestDrivesThatMakeOtherRows(t *testing.T) {
	schema := &tensor.Schema{Label: true}
	for _, c := range []struct {
		rows    int // of the drive's only fragment
		planned int64
		want    string
	}{
		{rows: 4, planned: 4},
		{rows: 3, planned: 4, want: "the drive made 3 rows for fragment 0"},
		{rows: 5, planned: 4, want: "the drive made 5 rows for fragment 0"},
	} {
		released := 0
		batch := tensor.New(schema, c.rows, func() { released++ })
		batch.Label = make([]float32, c.rows)
		manifest, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Rows: c.planned, RowGroups: []int64{4}}})
		require.NoError(t, err)
		o := dataset.Options{Batch: 10, Boundary: dataset.BoundaryNone}
		j := &job{Job: api.Job{Plan: o, Manifest: manifest}, plans: map[uint64]*dataset.Plan{},
			lowered: &lowering.Lowered{}}
		plan, err := j.plan(0)
		require.NoError(t, err)
		split, err := plan.Split(0)
		require.NoError(t, err)
		part := &splitPartition{Partition: &partition.Partition{Rows: c.planned},
			checkUnchanged: func(context.Context) error { return nil },
			failed:         func(_ context.Context, err error) error { return err }}
		s, err := j.openStream(t.Context(), &driveProcessor{Processor: &oneBatch{batch: batch}},
			api.SplitRequest{Split: split}, part)
		require.NoError(t, err)
		mb, err := s.Next(t.Context())
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			require.Equal(t, 1, released, "the mini-batch is released")
			continue
		}
		require.NoError(t, err)
		require.Zero(t, mb.Fragment, "the mini-batch is whole")
		mb.Release()
		_, err = s.Next(t.Context())
		require.ErrorIs(t, err, io.EOF)
	}
}
