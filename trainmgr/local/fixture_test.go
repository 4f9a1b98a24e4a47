package local

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// row is a row of the generated partitions: required, nullable, with and without a dictionary, and a list.
type row struct {
	Label int32   `parquet:"label"`
	Int0  *int32  `parquet:"int_0,optional"`
	Int1  float32 `parquet:"int_1"`
	Cat0  *int64  `parquet:"cat_0,optional,dict"`
	Cat1  int64   `parquet:"cat_1"`
	List0 []int64 `parquet:"list_0,list"`
}

// makePartition makes the bytes of a Parquet file, the same for the same numbers.
func makePartition(t testing.TB, seed uint64, rows, group, page int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	all := make([]row, rows)
	for i := range all {
		r := &all[i]
		r.Label, r.Int1, r.Cat1 = int32(rng.IntN(2)), rng.Float32()*1000, rng.Int64N(1<<31)
		if rng.IntN(4) > 0 {
			v := int32(rng.IntN(5000) - 100)
			r.Int0 = &v
		}
		if rng.IntN(5) > 0 {
			v := rng.Int64N(300)
			r.Cat0 = &v
		}
		for range rng.IntN(7) {
			r.List0 = append(r.List0, rng.Int64N(1<<40))
		}
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[row](&b, pq.MaxRowsPerRowGroup(int64(group)), pq.PageBufferSize(page),
		pq.Compression(&pq.Snappy))
	for part := range slices.Chunk(all, 97) {
		_, err := w.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// pipelines are documents by the kind of their lengths.
var pipelines = map[string]string{
	"lists": `name: lists
batch: 50
label: {column: label}
dense:
  - columns: [int_0, int_1]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0, cat_1, list_0]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
generated:
  - columns: [int_1]
    as: "b_{n}"
    ops: [bucketize: {borders: [1, 10, 100]}, sigrid_hash: {salt: 1, max: 10}]
`,
	"fixed": `name: fixed
batch: 50
ids: int32
label: {column: label}
dense:
  - columns: [int_0]
    ops: [fill_null: 0]
sparse:
  - columns: [cat_0, cat_1]
    ops: [fill_null: 7, sigrid_hash: {salt: 3, max: 1000}]
`,
	"narrow": `name: narrow
batch: 50
ids: auto
dense_type: bfloat16
label: {column: label}
dense:
  - columns: [int_0, int_1]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
  - columns: [int_0]
    as: raw
    ops: [fill_null: 0]
sparse:
  - columns: [cat_0, list_0]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`,
	"sets": `name: sets
batch: 50
ids: auto
label: {column: label}
sparse:
  - columns: [cat_0, list_0]
    deduplicate: true
    ops: [positive_modulus: 2]
  - columns: [cat_1]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
generated:
  - columns: [int_1]
    as: "b_{n}"
    deduplicate: true
    ops: [bucketize: {borders: [1, 10, 100]}]
`,
}

func pipelineOf(t testing.TB, name string) *pipeline.Spec {
	t.Helper()
	s, err := pipeline.Parse([]byte(pipelines[name]))
	require.NoError(t, err)
	return s
}

// dataSet is a few partitions of different sizes.
type dataSet struct {
	names []string
	parts [][]byte
	rows  []int
}

// newDataSet makes partitions of a given number of rows each.
func newDataSet(t testing.TB, group, page int, rows ...int) *dataSet {
	t.Helper()
	d := &dataSet{rows: rows}
	for i, n := range rows {
		d.names = append(d.names, fmt.Sprintf("part-%05d.parquet", i))
		d.parts = append(d.parts, makePartition(t, uint64(i), n, group, page))
	}
	return d
}

// total is the rows of all partitions.
func (d *dataSet) total() (n int64) {
	for _, r := range d.rows {
		n += int64(r)
	}
	return n
}

// files writes the partitions into a folder and returns their paths.
func (d *dataSet) files(t testing.TB) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, name := range d.names {
		paths = append(paths, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(paths[i], d.parts[i], 0o644))
	}
	return paths
}

// put appends partitions to a drive's volume.
func (d *dataSet) put(t testing.TB, dev *sdk.Device, which ...int) {
	t.Helper()
	vol, err := volume.Open(context.Background(), dev)
	require.NoError(t, err)
	for _, i := range which {
		require.NoError(t, vol.Put(context.Background(), d.names[i], int64(len(d.parts[i])),
			bytes.NewReader(d.parts[i])))
	}
}

// deal puts every partition on some of n drives: on one at least, in an order of its own.
func (d *dataSet) deal(rng *rand.Rand, n int) [][]int {
	held := make([][]int, n)
	for _, p := range rng.Perm(len(d.parts)) {
		first := rng.IntN(n)
		held[first] = append(held[first], p)
		if other := rng.IntN(n); other != first && rng.IntN(3) == 0 { // a replica
			held[other] = append(held[other], p)
		}
	}
	return held
}

// memory makes mem: drives that hold the partitions and stay as long as the test, and returns their URIs.
func (d *dataSet) memory(t testing.TB, held [][]int, query string) []string {
	t.Helper()
	name := strings.NewReplacer("/", "-", " ", "_", "#", "_", "?", "_", "%", "_").Replace(t.Name())
	var uris []string
	for i, which := range held {
		uri := fmt.Sprintf("mem:%s-%d-%d", name, i, rand.Int())
		dev, err := sdk.Open(context.Background(), uri+"?size=8MiB&slm=64MiB", sdk.DeviceOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		d.put(t, dev, which...)
		uris = append(uris, uri+query)
	}
	return uris
}

// onFiles makes file: drives that hold the partitions, and returns their URIs.
func (d *dataSet) onFiles(t testing.TB, held [][]int, lba int, query string) []string {
	t.Helper()
	dir := t.TempDir()
	var uris []string
	for i, which := range held {
		uri := fmt.Sprintf("file:%s/d%d.flash", dir, i)
		dev, err := sdk.Create(context.Background(), fmt.Sprintf("%s?size=8MiB&lba=%d", uri, lba), sdk.DeviceOptions{})
		require.NoError(t, err)
		d.put(t, dev, which...)
		require.NoError(t, dev.Close())
		uris = append(uris, uri+query)
	}
	return uris
}

// sum is a mini-batch's tensors in one number.
func sum(mb *tensor.MiniBatch) uint32 {
	h := crc32.NewIEEE()
	for _, b := range [][]byte{tensor.Bytes(mb.Values32), tensor.Bytes(mb.Values64), tensor.Bytes(mb.Dense),
		tensor.Bytes(mb.Dense16), tensor.Bytes(mb.Lengths), tensor.Bytes(mb.Unique), tensor.Bytes(mb.Inverse),
		tensor.Bytes(mb.Label), tensor.Bytes(mb.Weights)} {
		fmt.Fprint(h, len(b), " ")
		_, _ = h.Write(b)
	}
	return h.Sum32()
}

// work is a job that ran: its mini-batches by name, and the order in which they came.
type work struct {
	sums   map[tensor.Name]uint32
	order  []uint64 // numbers, epoch after epoch
	report *trainmgr.Report
}

// run opens the drives, runs a job to its end and closes everything.
func run(t require.TestingT, c Config, o trainmgr.Options, each func(*tensor.MiniBatch)) work {
	ctx := context.Background()
	m, err := Open(ctx, c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	return runOn(t, m, o, each)
}

func runOn(t require.TestingT, m *host.Manager, o trainmgr.Options, each func(*tensor.MiniBatch)) work {
	ctx := context.Background()
	j, err := trainmgr.Submit(ctx, m, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	w := work{sums: map[tensor.Name]uint32{}}
	for mb, err := range j.MiniBatches(ctx) {
		require.NoError(t, err)
		require.NoError(t, mb.Validate())
		require.NotContains(t, w.sums, mb.Name, "it came twice")
		w.sums[mb.Name] = sum(mb)
		w.order = append(w.order, mb.Name.Number)
		if each != nil {
			each(mb)
		}
	}
	w.report, err = j.Report(ctx)
	require.NoError(t, err)
	return w
}
