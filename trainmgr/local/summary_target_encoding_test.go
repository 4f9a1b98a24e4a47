package local_test

import (
	"fmt"
	"math/big"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/summary"
	summaries "github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// labelledRow is a row with a label and a key. ID numbers the rows over all files.
type labelledRow struct {
	Label int32  `parquet:"label"`
	Key   *int64 `parquet:"key,optional"`
	ID    int64  `parquet:"id"`
}

// labelledFiles writes files of rows, and returns the rows with the names of their folds.
func labelledFiles(t *testing.T, counts ...int) (files []string, rows []labelledRow, folds []int) {
	t.Helper()
	folder := t.TempDir()
	folding := targetencoding.Folding{Folds: 4, Seed: 9}
	for i, n := range counts {
		name := fmt.Sprintf("p%d.parquet", i)
		part, err := targetencoding.NewPartition(name)
		require.NoError(t, err)
		var list []labelledRow
		for j := range n {
			id := int64(len(rows) + j)
			r := labelledRow{Label: int32(id*id%7%3) - 1, ID: id}
			if id%11 > 0 {
				key := id * 7 % 13
				r.Key = &key
			}
			list, folds = append(list, r), append(folds, folding.Fold(part, int64(j)))
		}
		rows = append(rows, list...)
		files = append(files, filepath.Join(folder, name))
		require.NoError(t, pq.WriteFile(files[i], list, pq.MaxRowsPerRowGroup(300)))
	}
	return files, rows, folds
}

// smoothed returns the smoothed means of the labels of each row's key over the rows that pass, by the definition: of
// the other folds than the row's, or with serve of all.
func smoothed(rows []labelledRow, folds []int, passes func(i int) bool, serve bool) []float32 {
	type share struct {
		key  int64
		fold int // -1: all
	}
	var labels, n int64
	sums, counts := map[share]int64{}, map[share]int64{}
	for i, r := range rows {
		if !passes(i) {
			continue
		}
		labels, n = labels+int64(r.Label), n+1
		if r.Key != nil {
			for _, fold := range []int{-1, folds[i]} {
				sums[share{*r.Key, fold}] += int64(r.Label)
				counts[share{*r.Key, fold}]++
			}
		}
	}
	means := make([]float32, len(rows))
	for i, r := range rows {
		sum, count := int64(0), int64(0)
		if r.Key != nil {
			sum, count = sums[share{*r.Key, -1}], counts[share{*r.Key, -1}]
			if !serve {
				sum, count = sum-sums[share{*r.Key, folds[i]}], count-counts[share{*r.Key, folds[i]}]
			}
		}
		// (sum + 5/2 labels/n) / (count + 5/2)
		means[i], _ = big.NewRat(2*sum*n+5*labels, n*(2*count+5)).Float32()
	}
	return means
}

// TestTargetEncodings makes the labels of keys and encodes the rows with them, on every engine, over one and several
// drives, in and out of the order of the data set, and compares with sums over the rows.
func TestTargetEncodings(t *testing.T) {
	files, rows, folds := labelledFiles(t, 700, 1, 0, 450)
	for _, filtered := range []bool{false, true} {
		passes := func(i int) bool { return !filtered || rows[i].ID >= 100 }
		filter := ""
		if filtered {
			filter = "filter: {column: id, ge: 100}\n"
		}
		document := func(mode string) *pipeline.Spec {
			spec, err := pipeline.Parse([]byte("batch: 60\nlabel: {column: label}\ndense:\n" +
				"  - {columns: [key], ops: [target_encoding: {statistics: s, mode: " + mode +
				", folds: 4, p_smooth: 2.5, seed: 9}]}\n  - {columns: [id]}\nstatistics: {s: }\n" + filter))
			require.NoError(t, err)
			return spec
		}
		var before []byte
		var made *summaries.Report
		configs := []local.Config{
			{Files: source.ParseLocations(files...)},
			{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineReference}},
			{Files: source.ParseLocations(files...), Spread: 2, DriveOptions: host.DriveOptions{Engine: host.EngineCPU,
				Threads: 2}},
		}
		for i, c := range configs {
			made = runPass(t, c, summaries.Pass{Pipeline: document("train"), Name: "s", Batch: 90 + i})
			require.Len(t, made.Columns, 1)
			b, err := made.Encode()
			require.NoError(t, err)
			require.Contains(t, string(b[:40]), "millrace.summary/3")
			if before != nil {
				require.Equal(t, before, b)
			}
			before = b
			read, err := summary.Read(b)
			require.NoError(t, err)
			require.Equal(t, made.Columns, read.Columns)
		}
		for _, mode := range []string{"train", "serve"} {
			want, means := map[int64]float32{}, smoothed(rows, folds, passes, mode == "serve")
			for i, r := range rows {
				if passes(i) {
					want[r.ID] = means[i]
				}
			}
			bound, err := document(mode).BindStatistics("s", made.Summary, summary.Digest{1})
			require.NoError(t, err)
			for i, c := range configs {
				got := encodedRows(t, c, bound, []dataset.Shuffle{dataset.ShuffleNone, dataset.ShuffleRows}[i%2])
				require.Equal(t, want, got, "%s %d", mode, i)
			}
		}
	}
}

// encodedRows returns the encodings of rows by their ids.
func encodedRows(t *testing.T, c local.Config, spec *pipeline.Spec, shuffle dataset.Shuffle) map[int64]float32 {
	t.Helper()
	m, err := local.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	bound, _, err := (&local.Selections{}).Bind(t.Context(), m, spec)
	require.NoError(t, err)
	o := trainmgr.Options{Pipeline: bound, Shuffle: shuffle, Order: dataset.Deterministic, AllDrives: true}
	if shuffle == dataset.ShuffleRows {
		o.Window = 2
	}
	job, err := trainmgr.Submit(t.Context(), m, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	rows := map[int64]float32{}
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		for i := range mb.Rows {
			rows[int64(mb.Dense[2*i+1])] = mb.Dense[2*i]
		}
	}
	return rows
}

// TestTargetEncodingsOfOtherData: keys that the statistics lack get the mean, partitions that they do not know are
// refused in training, and labels that cannot be summed are errors that name the row.
func TestTargetEncodingsOfOtherData(t *testing.T) {
	files, _, _ := labelledFiles(t, 40)
	parse := func(label, mode string) *pipeline.Spec {
		spec, err := pipeline.Parse([]byte("label: {" + label + "}\ndense:\n  - {columns: [key], ops: [" +
			"target_encoding: {statistics: s, folds: 4, p_smooth: 2.5, seed: 9, mode: " + mode + "}]}\n" +
			"  - {columns: [id]}\nstatistics: {s: }\n"))
		require.NoError(t, err)
		return spec
	}
	spec := parse("column: label", "train")
	made := runPass(t, local.Config{Files: source.ParseLocations(files...)}, summaries.Pass{Pipeline: spec, Name: "s"})
	bind := func(spec *pipeline.Spec) *pipeline.Spec {
		bound, err := spec.BindStatistics("s", made.Summary, summary.Digest{1})
		require.NoError(t, err)
		return bound
	}
	path := filepath.Join(t.TempDir(), "later.parquet")
	strange := int64(1 << 50)
	require.NoError(t, pq.WriteFile(path, []labelledRow{{ID: 0, Key: &strange}, {ID: 1}}))
	encoding, err := targetencoding.NewEncoding(made.Columns[0].Targets, 9, 2.5, true)
	require.NoError(t, err)
	assert.Equal(t, map[int64]float32{0: encoding.Mean(), 1: encoding.Mean()},
		encodedRows(t, local.Config{Files: source.ParseLocations(path)}, bind(parse("column: label", "serve")),
			dataset.ShuffleNone))
	for _, c := range []local.Config{
		{Files: source.ParseLocations(path)},
		{Files: source.ParseLocations(files...), Names: []string{"day=1/p0.parquet"}},
		// the same rows under another name have other folds
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineReference},
			Names: []string{"x"}},
	} {
		m, err := local.Open(t.Context(), c)
		require.NoError(t, err)
		_, err = trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: bind(spec), AllDrives: true})
		require.ErrorIs(t, err, problem.ErrStatistics)
		require.ErrorContains(t, err, "was made of other partitions than ")
		require.NoError(t, m.Close())
	}

	m, err := local.Open(t.Context(), local.Config{Files: source.ParseLocations(files...)})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	_, err = (&summaries.Pass{Pipeline: parse("column: label, ops: [log: {add: 3}]", "train"), Name: "s"}).Run(t.Context(),
		&local.PassSource{Storage: m})
	require.ErrorIs(t, err, targetencoding.ErrTarget)
	require.ErrorContains(t, err, "p0.parquet: row 0: key")
}

// TestTargetEncodingsBesideVocabularies: a key is looked up, in the drive or behind it, while others are encoded whose
// ids are wider than those of the job.
func TestTargetEncodingsBesideVocabularies(t *testing.T) {
	files, rows, folds := labelledFiles(t, 400, 250)
	spec, err := pipeline.Parse([]byte("batch: 60\nids: int32\nlabel: {column: label}\ndense:\n" +
		"  - {columns: [key], ops: [target_encoding: {statistics: s, folds: 4, p_smooth: 2.5, seed: 9}]}\n" +
		"  - {columns: [id]}\nsparse: [{columns: [id], ops: [positive_modulus: 50, vocabulary: v]}]\n" +
		"statistics: {s: }\nvocabularies: {v: {base: 3}}\n"))
	require.NoError(t, err)
	want := smoothed(rows, folds, func(int) bool { return true }, false)
	var ids []int32
	for i, c := range []local.Config{
		{Files: source.ParseLocations(files...)},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineReference}},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineCPU}},
	} {
		made := runPass(t, c, summaries.Pass{Pipeline: spec, Name: "s"})
		bound, err := spec.BindStatistics("s", made.Summary, summary.Digest{1})
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "v.vocab")
		m, err := local.Open(t.Context(), c)
		require.NoError(t, err)
		_, err = (&reducer.Pass{Pipeline: bound, Name: "v", Path: path}).Run(t.Context(), &local.PassSource{Storage: m})
		require.NoError(t, err)
		bound, err = local.BindVocabularies(bound, map[string]string{"v": path})
		require.NoError(t, err)
		job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: bound, Shuffle: dataset.ShuffleNone,
			Order: dataset.Deterministic, AllDrives: true})
		require.NoError(t, err)
		var got []int32
		for mb, err := range job.MiniBatches(t.Context()) {
			require.NoError(t, err)
			got = append(got, mb.Values32...)
			for j := range mb.Rows {
				row := int(mb.Dense[2*j+1])
				require.Equal(t, want[row], mb.Dense[2*j], "row %d", row)
			}
		}
		require.NoError(t, job.Close())
		require.NoError(t, m.Close())
		require.Len(t, got, len(rows))
		if i > 0 {
			require.Equal(t, ids, got)
		}
		ids = got
	}
	assert.Equal(t, []int32{3, 4, 5}, ids[:3])
}
