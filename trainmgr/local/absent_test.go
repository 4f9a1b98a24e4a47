package local

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// The rows of partitions of one data set: features come and go, and types widen.
type (
	firstRow struct { // no label, no lists, a narrow id
		ID   int32   `parquet:"id"`
		Rate float32 `parquet:"rate"`
	}
	wholeRow struct {
		Label int32             `parquet:"label"`
		ID    *int64            `parquet:"id,optional"`
		Rate  float64           `parquet:"rate"`
		List  []int64           `parquet:"list,list"`
		City  string            `parquet:"city"`
		Hours map[int32]float32 `parquet:"hours"`
	}
	lastRow struct { // a list alone
		Label int32   `parquet:"label"`
		ID    int64   `parquet:"id"`
		List  []int64 `parquet:"list,list"`
	}
)

const absentDocument = `name: absent
batch: 40
label: {column: label, null: -1}
dense:
  - columns: [rate]
    absent: allow
    ops: [fill_null: 0.5]
  - columns: ["hours[3]"]
    absent: allow
    ops: [fill_null: 24]
sparse:
  - columns: [id]
    ops: [fill_null: -2]
  - columns: [list]
    absent: allow
  - columns: [city]
    absent: allow
    ops: [hash_bytes: xxh3, fill_null: 77]
  - inputs: [id, list]
    as: crossed
    absent: allow
    ops: [cartesian: {max_length: 50}]
`

func writeRows[T any](t testing.TB, rows []T) []byte {
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, rows, pq.MaxRowsPerRowGroup(70)))
	return b.Bytes()
}

// absentData makes four partitions, the first of which lacks most columns, and the rows' expected label, rate, hour and
// id, and the length of their lists.
func absentData(t testing.TB) (d *dataSet, label, rate, hour []float32, ids []int64, lists []int32) {
	rng := rand.New(rand.NewPCG(4, 12))
	d = &dataSet{}
	add := func(l, r, h float32, id int64, list int) {
		label, rate, hour = append(label, l), append(rate, r), append(hour, h)
		ids, lists = append(ids, id), append(lists, int32(list))
	}
	put := func(rows int, data []byte) {
		d.names = append(d.names, fmt.Sprintf("part-%d.parquet", len(d.names)))
		d.parts, d.rows = append(d.parts, data), append(d.rows, rows)
	}
	first := make([]firstRow, 130)
	for i := range first {
		first[i] = firstRow{ID: int32(rng.Int64N(1<<31) - 1<<30), Rate: rng.Float32()}
		add(-1, first[i].Rate, 24, int64(first[i].ID), 0)
	}
	put(len(first), writeRows(t, first))
	whole := make([]wholeRow, 160)
	for i := range whole {
		r := wholeRow{Label: rng.Int32N(2), Rate: rng.Float64() * 1e3, List: make([]int64, rng.IntN(4)), City: "x"}
		id, h := int64(-2), float32(24)
		if rng.IntN(3) > 0 {
			id = rng.Int64N(1 << 50)
			r.ID = &id
		}
		if rng.IntN(2) > 0 {
			h = rng.Float32()
			r.Hours = map[int32]float32{3: h, 4: 1}
		}
		add(float32(r.Label), float32(r.Rate), h, id, len(r.List))
		whole[i] = r
	}
	put(len(whole), writeRows(t, whole))
	last := make([]lastRow, 95)
	for i := range last {
		last[i] = lastRow{Label: 1, ID: int64(i), List: []int64{1, 2}}
		add(1, 0.5, 24, int64(i), 2)
	}
	put(len(last), writeRows(t, last))
	return d, label, rate, hour, ids, lists
}

// TestPartitionsThatLackColumns checks the values of columns that come and go over partitions, and that every engine,
// command set, number of drives and shuffle gives the same mini-batches.
func TestPartitionsThatLackColumns(t *testing.T) {
	d, label, rate, hour, ids, lists := absentData(t)
	spec, err := pipeline.Parse([]byte(absentDocument))
	require.NoError(t, err)
	for _, shuffle := range []dataset.Shuffle{dataset.ShuffleNone, dataset.ShuffleSplits, dataset.ShuffleRows} {
		o := trainmgr.Options{Pipeline: spec, Batch: 40, SplitBatches: 2, Seed: 5, Shuffle: shuffle,
			Order: dataset.Deterministic, AllDrives: true}
		row := 0
		reference := Config{Files: source.ParseLocations(d.files(t)...),
			DriveOptions: host.DriveOptions{Engine: host.EngineReference}}
		want := run(t, reference, o, func(mb *tensor.MiniBatch) {
			if shuffle != dataset.ShuffleNone {
				return
			}
			n := mb.Rows
			offsets := mb.OffsetPerKey()
			assert.Equal(t, label[row:row+n], mb.Label)
			for b := range n {
				assert.Equal(t, rate[row+b], mb.Dense[2*b])
				assert.Equal(t, hour[row+b], mb.Dense[2*b+1])
			}
			assert.Equal(t, ids[row:row+n], mb.Values64[offsets[0]:offsets[1]])
			assert.Equal(t, lists[row:row+n], mb.Lengths[n:2*n])
			for b, length := range lists[row : row+n] {
				if ids[row+b] == -2 { // of a null
					length = 0
				}
				assert.Equal(t, length, mb.Lengths[3*n+b], "an id crossed with a list is as long as the list")
			}
			if row < d.rows[0] {
				assert.Equal(t, slices.Repeat([]int64{77}, n), mb.Values64[offsets[2]:offsets[3]])
			}
			row += n
		})
		for _, drives := range []int{1, 3} {
			for _, engine := range []string{"vendor", "standard", "cpu"} {
				s := setup{place: "mem", drives: drives, lba: 512, engine: engine, streams: 2, slm: 4 << 20, seed: 9}
				if engine == "cpu" {
					s.place = "files"
				}
				got := run(t, s.config(t, d, nil), o, nil)
				assert.Equal(t, want.sums, got.sums, "%v, %d drives, %s", shuffle, drives, engine)
				assert.Equal(t, want.order, got.order)
			}
		}
	}
}

// TestResumeOverAbsentColumns checks that a job over partitions that lack columns goes on after any mini-batch.
func TestResumeOverAbsentColumns(t *testing.T) {
	d, _, _, _, _, _ := absentData(t)
	spec, err := pipeline.Parse([]byte(absentDocument))
	require.NoError(t, err)
	c := Config{Drives: d.memory(t, [][]int{{0, 2}, {1}}, ""), DriveOptions: host.DriveOptions{Commands: sdk.Vendor}}
	o := trainmgr.Options{Pipeline: spec, Batch: 40, SplitBatches: 2, Seed: 5, Order: dataset.Deterministic,
		AllDrives: true}
	want := run(t, c, o, nil)
	for stop := 1; stop < len(want.order); stop += 4 {
		m, err := Open(t.Context(), c)
		require.NoError(t, err)
		j, err := trainmgr.Submit(t.Context(), m, o)
		require.NoError(t, err)
		taken := 0
		for _, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if taken++; taken == stop {
				break
			}
		}
		token := j.Checkpoint()
		require.NoError(t, j.Close())
		require.NoError(t, m.Close())
		rest := o
		rest.Resume = &token
		got := run(t, c, rest, nil)
		for name, sum := range got.sums {
			assert.Equal(t, want.sums[name], sum, name)
		}
		assert.Subset(t, want.order, got.order)
		assert.GreaterOrEqual(t, len(got.order), len(want.order)-stop)
	}
}

// TestAbsentColumnsAreRefused checks that a column that partitions lack is an error that names them, unless the group
// allows it, and so is a column of types that have nothing in common.
func TestAbsentColumnsAreRefused(t *testing.T) {
	d, _, _, _, _, _ := absentData(t)
	for document, says := range map[string]string{
		"sparse: [{columns: [list]}]":                 "part-0.parquet: it is absent there; write absent: allow",
		"sparse: [{columns: [city]}]":                 "part-0.parquet, part-2.parquet: it is absent there",
		"dense: [{columns: [rate], absent: allow}]":   "put fill_null first",
		"label: {column: label}":                      "part-0.parquet: the label is absent there",
		"sparse: [{columns: [none], absent: allow}]":  `"none" is not in the dataset`,
		"sparse: [{columns: [other], absent: allow}]": "it is int64 in part-3.parquet and bytes in part-4.parquet",
	} {
		spec, err := pipeline.Parse([]byte(document))
		require.NoError(t, err)
		all := *d
		type numbers struct {
			Other int64 `parquet:"other"`
			ID    int64 `parquet:"id"`
		}
		type words struct {
			Other string `parquet:"other"`
			ID    int64  `parquet:"id"`
		}
		if says[:2] == "it" {
			all.names = append(slices.Clone(d.names), "part-3.parquet", "part-4.parquet")
			all.parts = append(slices.Clone(d.parts), writeRows(t, make([]numbers, 3)), writeRows(t, make([]words, 3)))
			all.rows = append(slices.Clone(d.rows), 3, 3)
		}
		m, err := Open(context.Background(), Config{Files: source.ParseLocations(all.files(t)...)})
		require.NoError(t, err)
		_, err = trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, AllDrives: true})
		require.ErrorContains(t, err, says)
		require.NoError(t, m.Close())
	}
}
