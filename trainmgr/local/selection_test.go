package local

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// filterRow is a row with columns that only filters name: country, price, ratio, user and when.
type filterRow struct {
	Number  int32    `parquet:"number"`
	Dense   *float32 `parquet:"x,optional"`
	IDs     []int64  `parquet:"ids,list"`
	Country *int64   `parquet:"country,optional"`
	Price   *float64 `parquet:"price,optional"`
	Ratio   float32  `parquet:"ratio"`
	User    *string  `parquet:"user,optional,dict"`
	When    int64    `parquet:"when,timestamp(millisecond)"`
}

func drawFilterRows(rng *rand.Rand, count int) []filterRow {
	prices := []float64{math.NaN(), math.Inf(-1), math.Inf(1), 0, math.Copysign(0, -1), 0.1, 1, math.Nextafter(1, 2), 2.5,
		-3, math.MaxFloat64}
	users := []string{"", "a", "b", "ccc", "dd"}
	rows := make([]filterRow, count)
	for i := range rows {
		r := &rows[i]
		r.Number, r.When = int32(i), int64(i)*3_600_000
		if rng.IntN(4) > 0 {
			x := rng.Float32()
			r.Dense = &x
		}
		for range rng.IntN(4) {
			r.IDs = append(r.IDs, rng.Int64N(1<<40))
		}
		if rng.IntN(5) > 0 {
			country := rng.Int64N(6) - 1
			r.Country = &country
		}
		if rng.IntN(5) > 0 {
			r.Price = &prices[rng.IntN(len(prices))]
		}
		r.Ratio = []float32{float32(math.NaN()), 0, 0.1, 0.5, 1}[rng.IntN(5)]
		if rng.IntN(5) > 0 {
			r.User = &users[rng.IntN(len(users))]
		}
	}
	return rows
}

// writeFilterRows writes rows to a file, in row groups.
func writeFilterRows(t *testing.T, path string, rows []filterRow, group int) {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewGenericWriter[filterRow](&b, pq.PageBufferSize(2048))
	for part := range slices.Chunk(rows, group) {
		_, err := w.Write(part)
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
}

// filterCase is a filter with its definition for a row.
type filterCase struct {
	filter string
	passes func(r *filterRow) bool
}

func there[T any](v *T, test func(T) bool) bool { return v != nil && test(*v) }

// filterCases has every test of a filter, over nulls and NaN too.
var filterCases = []filterCase{
	{"{column: country, in: [1, 4]}", func(r *filterRow) bool {
		return there(r.Country, func(c int64) bool { return c == 1 || c == 4 })
	}},
	{"{column: country, ne: 1}", func(r *filterRow) bool {
		return there(r.Country, func(c int64) bool { return c != 1 })
	}},
	{"{not: {column: country, eq: 1}}", func(r *filterRow) bool {
		return !there(r.Country, func(c int64) bool { return c == 1 })
	}},
	{"{column: country, ge: 0, lt: 3}", func(r *filterRow) bool {
		return there(r.Country, func(c int64) bool { return c >= 0 && c < 3 })
	}},
	{"{column: country, null: true}", func(r *filterRow) bool { return r.Country == nil }},
	{"{column: user, null: false}", func(r *filterRow) bool { return r.User != nil }},
	{"{column: price, gt: 1}", func(r *filterRow) bool { return there(r.Price, func(p float64) bool { return p > 1 }) }},
	{"{column: price, ge: 1, null: false}", func(r *filterRow) bool {
		return there(r.Price, func(p float64) bool { return p >= 1 })
	}},
	{"{column: price, lt: 1}", func(r *filterRow) bool { return there(r.Price, func(p float64) bool { return p < 1 }) }},
	{"{column: price, le: 0}", func(r *filterRow) bool { return there(r.Price, func(p float64) bool { return p <= 0 }) }},
	{"{column: price, ne: 0.1}", func(r *filterRow) bool {
		return there(r.Price, func(p float64) bool { return p != 0.1 })
	}},
	{"{column: price, in: [0, 2.5, -3]}", func(r *filterRow) bool {
		return there(r.Price, func(p float64) bool { return p == 0 || p == 2.5 || p == -3 })
	}},
	{"{column: ratio, eq: 0.1}", func(r *filterRow) bool { return r.Ratio == 0.1 }},
	{"{column: ratio, gt: 0.1}", func(r *filterRow) bool { return r.Ratio > 0.1 }},
	{"{any: [{column: ratio, gt: 0.1}, {all: [{column: country, le: 1}, {not: {column: price, null: true}}]}]}",
		func(r *filterRow) bool {
			return r.Ratio > 0.1 || there(r.Country, func(c int64) bool { return c <= 1 }) && r.Price != nil
		}},
	{"{column: hour, in: [3, 23]}", func(r *filterRow) bool {
		return r.When/3_600_000%24 == 3 || r.When/3_600_000%24 == 23
	}},
	{"{column: number, lt: 0}", func(*filterRow) bool { return false }},
	{"{column: number, ge: 0}", func(*filterRow) bool { return true }},
	{"{column: number, ge: 700, le: 705}", func(r *filterRow) bool { return r.Number >= 700 && r.Number <= 705 }},
	{"{sampling: {key: number, rate: 0.3, salt: -5}}", func(r *filterRow) bool {
		return (&selection.Sampling{Rate: 0.3, Salt: -5}).Keeps(int64(r.Number))
	}},
}

// filterPipeline is a pipeline with a filter.
func filterPipeline(t *testing.T, filter string) *pipeline.Spec {
	t.Helper()
	hour := ""
	if strings.Contains(filter, "hour") {
		hour = "values: [{as: hour, from: when, ops: [to_seconds, get_local_hour: {zone: UTC}]}]\n"
	}
	spec, err := pipeline.Parse([]byte(`batch: 64
label: {column: number}
` + hour + `dense: [{columns: [x], ops: [fill_null: -1]}]
sparse: [{columns: [ids], ops: [sigrid_hash: {max: 1000}]}, {columns: [country], ops: [positive_modulus: 7]}]
` + filter))
	require.NoError(t, err)
	return spec
}

// numberedRow is what a row became.
type numberedRow struct {
	dense     float32
	ids, keys []int64
}

// collected is the rows of mini-batches, by name of the partition and number of the row, which the label is.
type collected struct {
	rows    map[string]numberedRow
	batches []string // the rows of each, joined
}

// collect runs a job over files and collects its rows.
func collect(t *testing.T, c Config, spec *pipeline.Spec) *collected {
	t.Helper()
	m, err := Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	spec, _, err = new(Selections).Bind(t.Context(), m, spec)
	require.NoError(t, err)
	data, err := m.Dataset(t.Context())
	require.NoError(t, err)
	job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone,
		Order: dataset.Deterministic, AllDrives: true, SplitBatches: 3})
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	out := &collected{rows: map[string]numberedRow{}}
	plan := job.Plan()
	if plan.MiniBatches() == 0 {
		require.Zero(t, plan.Rows())
		return out
	}
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, mb.Validate())
		at, err := plan.Fragment(mb.Name.Number)
		require.NoError(t, err)
		require.Equal(t, at.Rows, mb.Rows)
		offsets, names := mb.Offsets(nil), []string{}
		for i := range mb.Rows {
			name := fmt.Sprintf("%s:%g", data.Manifest.Partitions[at.Partition].Name, mb.Label[i])
			row := numberedRow{dense: mb.Dense[i]}
			row.ids = append(row.ids, mb.Values64[offsets[i]:offsets[i+1]]...)
			row.keys = append(row.keys, mb.Values64[offsets[mb.Rows+i]:offsets[mb.Rows+i+1]]...)
			require.NotContains(t, out.rows, name)
			out.rows[name], names = row, append(names, name)
		}
		out.batches = append(out.batches, strings.Join(names, " "))
	}
	report, err := job.Report(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, plan.Rows(), report.Rows)
	made := int64(0)
	for _, d := range report.PerDrive {
		made += d.Rows
	}
	require.Equal(t, plan.Rows(), made, "drives count the rows that they handed on")
	return out
}

// cutRows cuts the passing rows of files as a plan does.
func cutRows(files map[string][]filterRow, batch int, passes func(*filterRow) bool) (batches []string) {
	names := []string{}
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var passing []string
		for i := range files[name] {
			if passes(&files[name][i]) {
				passing = append(passing, fmt.Sprintf("%s:%d", name, files[name][i].Number))
			}
		}
		for part := range slices.Chunk(passing, batch) {
			batches = append(batches, strings.Join(part, " "))
		}
	}
	return batches
}

// TestFiltersAreThePlainReference compares jobs with filters with the job without one, whose rows are dropped here: the
// same rows come, cut as passing rows, with the same values, on every engine and both command sets.
func TestFiltersAreThePlainReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 3))
	dir := t.TempDir()
	files, paths := map[string][]filterRow{}, []string{}
	for i, rows := range []int{900, 1, 300} {
		name := fmt.Sprintf("part-%d.parquet", i)
		files[name] = drawFilterRows(rng, rows)
		paths = append(paths, filepath.Join(dir, name))
		writeFilterRows(t, paths[i], files[name], []int{130, 1, 300}[i])
	}
	config := func(engine host.Engine) Config {
		return Config{Files: source.ParseLocations(paths...), DriveOptions: host.DriveOptions{Engine: engine, SLM: 64 << 20}}
	}
	all := collect(t, config(host.EngineCPU), filterPipeline(t, ""))
	require.Len(t, all.rows, 1201)
	for i, c := range filterCases {
		t.Run(c.filter, func(t *testing.T) {
			t.Parallel()
			want := cutRows(files, 64, c.passes)
			engines := []host.Engine{host.EngineDrive, host.EngineCPU, host.EngineReference}
			for _, engine := range []host.Engine{engines[i%3], engines[(i+1)%3]} {
				got := collect(t, config(engine), filterPipeline(t, "filter: "+c.filter))
				require.Equal(t, want, got.batches, "engine %s", engine)
				for name, row := range got.rows {
					require.Equal(t, all.rows[name], row, "engine %s, row %s", engine, name)
				}
			}
		})
	}
	for _, commands := range []string{"vendor", "standard"} {
		t.Run("two drives, commands "+commands, func(t *testing.T) {
			d := &dataSet{}
			for i := range paths {
				b, err := os.ReadFile(paths[i])
				require.NoError(t, err)
				d.names, d.parts = append(d.names, filepath.Base(paths[i])), append(d.parts, b)
			}
			c := Config{Drives: d.memory(t, [][]int{{0, 1}, {1, 2}}, "?commands="+commands)}
			got := collect(t, c, filterPipeline(t, "filter: "+filterCases[0].filter))
			require.Equal(t, cutRows(files, 64, filterCases[0].passes), got.batches)
			for name, row := range got.rows {
				require.Equal(t, all.rows[name], row)
			}
		})
	}
}

// TestOneInAHundredFillsMiniBatches samples 1 % of several partitions: only the last mini-batch of a partition is
// short, and the rows are those of the sampling's definition.
func TestOneInAHundredFillsMiniBatches(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	var paths []string
	for i := range 2 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("p%d.parquet", i)))
		writeFilterRows(t, paths[i], drawFilterRows(rng, 15_000), 4000)
	}
	c := Config{Files: source.ParseLocations(paths...), DriveOptions: host.DriveOptions{SLM: 64 << 20}}
	got := collect(t, c, filterPipeline(t, "filter: {sampling: {key: row, rate: 0.01, salt: 3}}"))
	short := 0
	for _, batch := range got.batches {
		if strings.Count(batch, ":") < 64 {
			short++
		}
	}
	assert.InDelta(t, 300, len(got.rows), 70)
	assert.LessOrEqual(t, short, 2)
	condition := selection.Condition{Sampling: &selection.Sampling{Key: -1, Rate: 0.01, Salt: 3}}
	for i := range paths {
		name := filepath.Base(paths[i])
		passes, err := condition.Evaluate(&selection.Block{Partition: name, Rows: 15_000})
		require.NoError(t, err)
		for row, pass := range passes {
			_, came := got.rows[fmt.Sprintf("%s:%d", name, row)]
			require.Equal(t, pass, came, "%s: row %d", name, row)
		}
	}
}

// TestFiltersOverCriteosRows filters rows of text and binary rows, whose malformed cells may be null.
func TestFiltersOverCriteosRows(t *testing.T) {
	var lines, kept strings.Builder
	for i := range 500 {
		decimal := fmt.Sprint(i % 11)
		if i%7 == 0 {
			decimal = ""
		}
		line := criteoLine(fmt.Sprint(i%2), decimal, fmt.Sprintf("%08x", i))
		if i%3 == 1 {
			line = criteoLine("1", "x", "zz") // malformed
		}
		lines.WriteString(line)
		if i%3 != 1 && i%7 != 0 && i%11 >= 5 {
			kept.WriteString(line)
		}
	}
	dir := t.TempDir()
	path, expected := filepath.Join(dir, "a.tsv"), filepath.Join(dir, "b.tsv")
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o644))
	require.NoError(t, os.WriteFile(expected, []byte(kept.String()), 0o644))
	document := `batch: 32
label: {column: label, null: 0}
dense: [{columns: [int_0..int_12], ops: [fill_null: 0]}]
sparse: [{columns: [cat_0..cat_25], ops: [fill_null: 0]}]
`
	tensors := func(path, filter string, engine host.Engine, policy text.Policy) (list []uint32, err error) {
		m, err := Open(t.Context(), Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine,
			Source: program.CriteoTSV, Text: text.Options{Policy: policy}, SLM: 64 << 20}})
		require.NoError(t, err)
		defer func() { require.NoError(t, m.Close()) }()
		spec, err := pipeline.Parse([]byte(document + filter))
		require.NoError(t, err)
		if spec, _, err = new(Selections).Bind(t.Context(), m, spec); err != nil {
			return nil, err
		}
		runOn(t, m, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic,
			AllDrives: true}, func(mb *tensor.MiniBatch) { list = append(list, sum(mb)) })
		return list, nil
	}
	want, err := tensors(expected, "", host.EngineCPU, text.Null)
	require.NoError(t, err)
	for _, engine := range paperEngines {
		got, err := tensors(path, "filter: {column: int_3, ge: 5}", engine, text.Null)
		require.NoError(t, err)
		assert.Equal(t, want, got, "engine %q", engine)
	}
	_, err = tensors(path, "filter: {column: int_3, ge: 5}", host.EngineCPU, text.Drop)
	require.ErrorContains(t, err, "malformed rows are dropped while mini-batches are made")
}

// TestSelectionsAreKept checks that a selection is made once for a data set and a filter, in a process and in a folder,
// and that a damaged file is made again.
func TestSelectionsAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	writeFilterRows(t, path, drawFilterRows(rand.New(rand.NewPCG(5, 5)), 200), 70)
	m, err := Open(t.Context(), Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{SLM: 64 << 20}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	spec := filterPipeline(t, "filter: {column: country, eq: 1}")
	kept := filepath.Join(dir, "kept", "selections")
	passes := 0
	selections := func() *Selections {
		return &Selections{Dir: kept, Started: func(rows int64) { assert.EqualValues(t, 200, rows); passes++ }}
	}
	first := selections()
	bound, report, err := first.Bind(t.Context(), m, spec)
	require.NoError(t, err)
	assert.False(t, report.Kept)
	assert.EqualValues(t, 200, report.Rows)
	assert.Equal(t, bound.Selection.Digest, report.Digest)
	assert.Equal(t, bound.Selection.Passing(), report.Passing)
	assert.Nil(t, spec.Selection, "the spec did not change")
	for _, s := range []*Selections{first, selections()} {
		again, report, err := s.Bind(t.Context(), m, spec)
		require.NoError(t, err)
		assert.True(t, report.Kept)
		assert.Equal(t, bound.Selection, again.Selection)
	}
	assert.Equal(t, 1, passes)
	_, report, err = selections().Bind(t.Context(), m, filterPipeline(t, "filter: {column: country, eq: 2}"))
	require.NoError(t, err)
	assert.False(t, report.Kept, "another filter")
	files, err := filepath.Glob(filepath.Join(kept, "*"))
	require.NoError(t, err)
	require.Len(t, files, 4, "two selections, and the stamps of the files of each")
	files, err = filepath.Glob(filepath.Join(kept, "*.selection"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.WriteFile(f, []byte("damaged"), 0o600))
	}
	again, report, err := selections().Bind(t.Context(), m, spec)
	require.NoError(t, err)
	assert.False(t, report.Kept)
	assert.Equal(t, bound.Selection, again.Selection)

	// A file that was written since is read again, though its samples are the same; a copy elsewhere is not.
	copied := filepath.Join(t.TempDir(), "a.parquet")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, b, 0o600))
	later := time.Now().Add(time.Minute)
	require.NoError(t, os.Chtimes(path, later, later))
	for _, file := range []string{copied, path} {
		keeps := file == copied
		for _, s := range []*Selections{first, selections()} {
			there, err := Open(t.Context(), Config{
				Files: source.ParseLocations(file), DriveOptions: host.DriveOptions{SLM: 64 << 20},
			})
			require.NoError(t, err)
			again, report, err = s.Bind(t.Context(), there, spec)
			require.NoError(t, err)
			assert.Equal(t, keeps, report.Kept, file)
			assert.Equal(t, bound.Selection, again.Selection)
			require.NoError(t, there.Close())
			keeps = true // the first pass made the selection for both
		}
	}

	// A selection of another filter, or of other data, is refused.
	other := *filterPipeline(t, "filter: {column: country, eq: 2}")
	other.Selection = bound.Selection
	_, err = trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: &other, AllDrives: true})
	require.ErrorIs(t, err, problem.ErrSelection)
	_, err = trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, AllDrives: true})
	require.ErrorContains(t, err, "the rows that pass are not known here")
	elsewhere := filepath.Join(dir, "b.parquet")
	writeFilterRows(t, elsewhere, drawFilterRows(rand.New(rand.NewPCG(5, 6)), 200), 70)
	m2, err := Open(t.Context(), Config{Files: source.ParseLocations(elsewhere),
		DriveOptions: host.DriveOptions{SLM: 64 << 20}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m2.Close()) }()
	_, err = trainmgr.Submit(t.Context(), m2, trainmgr.Options{Pipeline: bound, AllDrives: true})
	require.ErrorIs(t, err, problem.ErrSelection)
	require.ErrorContains(t, err, "it was made for the data set")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = new(Selections).Bind(canceled, m, spec)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = new(Selections).Bind(canceled, m, filterPipeline(t, "filter: {sampling: {key: row, rate: 0.5}}"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestAFilteredJobResumes stops a job anywhere, also inside a split and with mixed rows, and resumes: the rest comes,
// and the sequence is that of a job that was not stopped.
func TestAFilteredJobResumes(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(9, 9))
	var paths []string
	for i := range 3 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("p%d.parquet", i)))
		writeFilterRows(t, paths[i], drawFilterRows(rng, 1500), 400)
	}
	m, err := Open(t.Context(), Config{Files: source.ParseLocations(paths...),
		DriveOptions: host.DriveOptions{SLM: 64 << 20}})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	spec, _, err := new(Selections).Bind(t.Context(), m, filterPipeline(t,
		"filter: {any: [{column: ratio, gt: 0.1}, {sampling: {key: user, rate: 0.4}}]}"))
	require.NoError(t, err)
	for _, shuffle := range []dataset.Shuffle{dataset.ShuffleNone, dataset.ShuffleSplits, dataset.ShuffleRows} {
		o := trainmgr.Options{Pipeline: spec, Shuffle: shuffle, Seed: 4, Order: dataset.Deterministic, AllDrives: true,
			SplitBatches: 5, Epochs: 2}
		if shuffle == dataset.ShuffleRows {
			o.Window = 2
		}
		whole := runOn(t, m, o, nil)
		require.Greater(t, len(whole.order), 20)
		for _, stopAfter := range []int{1, 4, 7, len(whole.order) - 1} {
			job, err := trainmgr.Submit(t.Context(), m, o)
			require.NoError(t, err)
			var order []uint64
			sums := map[tensor.Name]uint32{}
			for mb, err := range job.MiniBatches(t.Context()) {
				require.NoError(t, err)
				order, sums[mb.Name] = append(order, mb.Name.Number), sum(mb)
				if len(order) == stopAfter {
					require.NoError(t, job.Acknowledge(mb.Name))
					break
				}
			}
			token := job.Checkpoint()
			require.NoError(t, job.Close())
			resumed := o
			resumed.Resume = &token
			rest := runOn(t, m, resumed, nil)
			require.Equal(t, whole.order, append(order, rest.order...), "%v, stopped after %d", shuffle, stopAfter)
			for name, s := range rest.sums {
				sums[name] = s
			}
			require.Equal(t, whole.sums, sums)
		}
	}
}
