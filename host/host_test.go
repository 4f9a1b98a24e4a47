package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

// plain is a row of the partitions: cat holds the row's number, so that every row is known again.
type plain struct {
	Label int32 `parquet:"label"`
	Cat   int64 `parquet:"cat"`
}

// numbered makes a partition whose rows are numbered from first on.
func numbered(t testing.TB, first, n int) []byte {
	rows := make([]plain, n)
	for i := range rows {
		rows[i] = plain{int32(i & 1), int64(first + i)}
	}
	return parquetOf(t, rows)
}

func parquetOf[T any](t testing.TB, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewGenericWriter[T](&b, pq.MaxRowsPerRowGroup(37))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// write puts files into a folder and returns their paths.
func write(t testing.TB, files map[string][]byte) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for name, b := range files {
		paths = append(paths, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	slices.Sort(paths)
	return paths
}

// onDrive makes a file: drive with members and returns its URI.
func onDrive(t testing.TB, files map[string][]byte) string {
	t.Helper()
	uri := "file:" + t.TempDir() + "/d.flash"
	dev, err := sdk.Create(t.Context(), uri+"?size=4MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	vol, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	for name, b := range files {
		require.NoError(t, vol.Put(t.Context(), name, int64(len(b)), bytes.NewReader(b)))
	}
	require.NoError(t, dev.Close())
	return uri
}

const doc = "name: p\nbatch: 10\nlabel: {column: label}\nsparse:\n  - columns: [cat]\n"

func openManager(t testing.TB, drives ...*Drive) *Manager {
	t.Helper()
	m, err := NewManager(Options{MeasureTime: time.Millisecond}, drives...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// prepare makes a job of the document over what the manager holds.
func prepare(t testing.TB, m *Manager, o dataset.Options) (*api.Job, *dataset.Plan) {
	t.Helper()
	j, plan := describeJob(t, m, o)
	require.NoError(t, m.Prepare(t.Context(), j))
	return j, plan
}

// describeJob makes a job of the document over what the manager holds, and does not prepare it.
func describeJob(t testing.TB, m *Manager, o dataset.Options) (*api.Job, *dataset.Plan) {
	t.Helper()
	spec, err := pipeline.Parse([]byte(doc))
	require.NoError(t, err)
	data, err := m.Dataset(t.Context())
	require.NoError(t, err)
	o.Batch = 10
	plan, err := dataset.NewPlan(data.Manifest, o)
	require.NoError(t, err)
	return &api.Job{Digest: dataset.Digest{byte(o.Shuffle) + 1}, Pipeline: spec, Plan: plan.Options()}, plan
}

// take reads a stream to its end and returns the rows and numbers of its mini-batches.
func take(t testing.TB, s api.Stream) (rows []int64, numbers []uint64) {
	t.Helper()
	for {
		mb, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return rows, numbers
		}
		require.NoError(t, err)
		rows = append(rows, mb.Values64...)
		numbers = append(numbers, mb.Name.Number)
		mb.Release()
	}
}

func files(t testing.TB, paths []string, o DriveOptions) *Drive {
	t.Helper()
	o.SLM = 8 << 20
	d, err := OpenFiles(t.Context(), source.ParseLocations(paths...), o)
	require.NoError(t, err)
	return d
}

// TestSplitsFromAnyMiniBatch checks that a request that begins inside a split gives what the whole split gives from
// there on, with mixed rows too, where the beginning of the window has to be made again.
func TestSplitsFromAnyMiniBatch(t *testing.T) {
	paths := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 105), "b.parquet": numbered(t, 1000, 40)})
	for _, shuffle := range []dataset.Shuffle{dataset.ShuffleNone, dataset.ShuffleSplits, dataset.ShuffleRows} {
		for _, engine := range []Engine{EngineDrive, EngineCPU, EngineReference} {
			t.Run(fmt.Sprint(shuffle, " ", engine), func(t *testing.T) {
				m := openManager(t, files(t, paths, DriveOptions{Engine: engine}))
				j, plan := prepare(t, m, dataset.Options{Shuffle: shuffle, SplitBatches: 7, Window: 3, Seed: 5})
				seen := map[int64]bool{}
				for split := range plan.All() {
					open := func(from int) ([]int64, []uint64) {
						s, err := m.Open(t.Context(),
							api.SplitRequest{Job: j.Digest, Drive: "files", Split: split, From: from})
						require.NoError(t, err)
						rows, numbers := take(t, s)
						require.NoError(t, s.Close())
						require.NoError(t, s.Close(), "closing twice is not an error")
						return rows, numbers
					}
					whole, numbers := open(0)
					require.Len(t, numbers, split.Fragments)
					require.Equal(t, split.FirstFragment, numbers[0])
					for _, r := range whole {
						require.False(t, seen[r])
						seen[r] = true
					}
					for from := 1; from < split.Fragments; from++ {
						rows, rest := open(from)
						require.Equal(t, whole[from*10:], rows)
						require.Equal(t, numbers[from:], rest)
					}
				}
				require.Len(t, seen, 145)
			})
		}
	}
}

func TestOrdersRefused(t *testing.T) {
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 105)}),
		DriveOptions{Streams: 1}),
		files(t, write(t, map[string][]byte{"b.parquet": numbered(t, 0, 10)}), DriveOptions{Name: "other"}))
	j, plan := prepare(t, m, dataset.Options{Shuffle: dataset.ShuffleNone, SplitBatches: 4})
	split, err := plan.Split(1)
	require.NoError(t, err)
	good := api.SplitRequest{Job: j.Digest, Drive: "files", Split: split}
	for name, c := range map[string]struct {
		change func(*api.SplitRequest)
		want   error
		says   string
	}{
		"another job":   {func(o *api.SplitRequest) { o.Job = dataset.Digest{9} }, api.ErrUnknownJob, ""},
		"another drive": {func(o *api.SplitRequest) { o.Drive = "none" }, api.ErrUnknownDrive, "none"},
		"not its partition": {func(o *api.SplitRequest) { o.Drive = "other" }, nil,
			"does not hold partition a.parquet"},
		"no partition":        {func(o *api.SplitRequest) { o.Split.Partition = 2 }, nil, "partition 2 of 2"},
		"a partition below 0": {func(o *api.SplitRequest) { o.Split.Partition = -1 }, nil, "partition -1"},
		"another cut":         {func(o *api.SplitRequest) { o.Split.Rows-- }, nil, "plan alike"},
		"another place":       {func(o *api.SplitRequest) { o.Split.Position = 77 }, dataset.ErrNumber, ""},
		"behind its end":      {func(o *api.SplitRequest) { o.From = 4 }, nil, "plan alike"},
		"before its start":    {func(o *api.SplitRequest) { o.From = -1 }, nil, "plan alike"},
	} {
		o := good
		c.change(&o)
		_, err := m.Open(t.Context(), o)
		require.Error(t, err, name)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
		assert.ErrorContains(t, err, c.says, name)
	}
	// As many streams as the drive takes, and no leak of places by those refused.
	s, err := m.Open(t.Context(), good)
	require.NoError(t, err)
	_, err = m.Open(t.Context(), good)
	require.ErrorIs(t, err, api.ErrBusy)
	require.NoError(t, s.Close())
	s, err = m.Open(t.Context(), good)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestUnknownJobsAndDrives(t *testing.T) {
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 20)}), DriveOptions{}))
	ctx := t.Context()
	_, err := m.Measure(ctx, dataset.Digest{1}, "files")
	require.ErrorIs(t, err, api.ErrUnknownJob)
	_, err = m.Report(ctx, dataset.Digest{1})
	require.ErrorIs(t, err, api.ErrUnknownJob)
	require.ErrorIs(t, m.Finish(ctx, dataset.Digest{1}), api.ErrUnknownJob)
	j, _ := prepare(t, m, dataset.Options{})
	require.NoError(t, m.Prepare(ctx, j), "preparing it again changes nothing")
	_, err = m.Measure(ctx, j.Digest, "disk9")
	require.ErrorIs(t, err, api.ErrUnknownDrive)
	require.NoError(t, m.Finish(ctx, j.Digest))
	require.ErrorIs(t, m.Finish(ctx, j.Digest), api.ErrUnknownJob)
}

// TestADriveThatWentIsReported checks that a report has what a lost drive made for the job, and says that its counters
// are missing.
func TestADriveThatWentIsReported(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 300)})
	d, err := OpenDrive(t.Context(), uri, DriveOptions{})
	require.NoError(t, err)
	m, err := NewManager(Options{}, d)
	require.NoError(t, err)
	j, plan := prepare(t, m, dataset.Options{SplitBatches: 1000})
	for split := range plan.All() {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: uri, Split: split})
		require.NoError(t, err)
		take(t, s)
		require.NoError(t, s.Close())
	}
	require.NoError(t, d.device.Close())
	list, err := m.Report(t.Context(), j.Digest)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.EqualValues(t, 300, list[0].Rows)
	assert.Equal(t, "drive (vendor)", list[0].Engine)
	assert.Nil(t, list[0].Counters)
	assert.Contains(t, list[0].Problem, "read its counters")
	_ = m.Close() // the device is closed already
}

// TestMeasuringDeliversAndReportsNothing checks that P is positive, and that the report counts from after the
// measurement.
func TestMeasuringDeliversAndReportsNothing(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 300), "empty.parquet": numbered(t, 0, 0),
		"b.parquet": numbered(t, 1000, 95)})
	for _, o := range []DriveOptions{{}, {Engine: EngineCPU, Threads: 2}, {Engine: EngineReference}} {
		d, err := OpenDrive(t.Context(), uri, o)
		require.NoError(t, err)
		m, err := NewManager(Options{MeasureTime: time.Millisecond}, d)
		require.NoError(t, err)
		j, plan := prepare(t, m, dataset.Options{SplitBatches: 1000})
		rate, err := m.Measure(t.Context(), j.Digest, uri)
		require.NoError(t, err)
		assert.Positive(t, rate.RowsPerSecond)
		assert.Positive(t, rate.Rows)
		list, err := m.Report(t.Context(), j.Digest)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, rate.RowsPerSecond, list[0].RowsPerSecond)
		assert.Zero(t, list[0].Rows)
		assert.Zero(t, list[0].BytesMoved)
		if k := list[0].Counters; k != nil {
			assert.Zero(t, k.Programs)
			assert.Zero(t, k.FlashToDRAMBytes+k.FlashLentBytes)
		}
		for split := range plan.All() {
			s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: uri, Split: split})
			require.NoError(t, err)
			take(t, s)
			require.NoError(t, s.Close())
		}
		list, err = m.Report(t.Context(), j.Digest)
		require.NoError(t, err)
		assert.EqualValues(t, 395, list[0].Rows)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.Measure(ctx, j.Digest, uri)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, m.Close())
	}
}

func TestMeasuringADriveWithoutRows(t *testing.T) {
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 0)}), DriveOptions{}))
	j, _ := prepare(t, m, dataset.Options{})
	_, err := m.Measure(t.Context(), j.Digest, "files")
	require.ErrorContains(t, err, "holds no rows")
}

// TestAReaderOutlivesTheContextItWasOpenedWith checks that a drive that was opened under a deadline works after it.
func TestAReaderOutlivesTheContextItWasOpenedWith(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 50)})
	ctx, cancel := context.WithCancel(t.Context())
	d, err := OpenDrive(ctx, uri, DriveOptions{Engine: EngineCPU})
	require.NoError(t, err)
	cancel()
	m := openManager(t, d)
	j, plan := prepare(t, m, dataset.Options{})
	split, err := plan.Split(0)
	require.NoError(t, err)
	s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: uri, Split: split})
	require.NoError(t, err)
	rows, _ := take(t, s)
	assert.Len(t, rows, 50)
	require.NoError(t, s.Close())
}

// Rows of other shapes, for schemas.
type (
	nullable struct {
		Label *int32 `parquet:"label,optional"`
		Cat   int64  `parquet:"cat"`
	}
	narrow struct {
		Label int32 `parquet:"label"`
		Cat   int32 `parquet:"cat"`
	}
	mapped struct {
		Lists  map[int32][]int64 `parquet:"lists"`
		Floats map[int32]float32 `parquet:"floats"`
		Words  map[string]int64  `parquet:"words"`
		Texts  map[int32]string  `parquet:"texts"`
	}
	lists struct {
		Label int32   `parquet:"label"`
		Cat   []int64 `parquet:"cat,list"`
		Extra float64 `parquet:"extra"`
	}
)

// TestPartitionsAreOneSchema checks that columns that differ and can be merged are widened, that those that cannot are
// named, and that columns that no pipeline names do no harm.
func TestPartitionsAreOneSchema(t *testing.T) {
	find := func(d *api.Dataset, name string) *columntypes.Column {
		for i := range d.Columns {
			if d.Columns[i].Name == name {
				return &d.Columns[i]
			}
		}
		return nil
	}
	data := func(other []byte) *api.Dataset {
		m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 10), "b.parquet": other}),
			DriveOptions{}))
		d, err := m.Dataset(t.Context())
		require.NoError(t, err)
		return d
	}
	d := data(parquetOf(t, make([]nullable, 5)))
	assert.True(t, find(d, "label").Nullable, "nullable in one is nullable")
	require.NoError(t, find(d, "label").Unsupported)
	d = data(parquetOf(t, make([]narrow, 5)))
	require.NoError(t, find(d, "cat").Unsupported)
	assert.Zero(t, find(d, "cat").Bits, "as wide as the widest")
	d = data(parquetOf(t, []lists{{1, []int64{1, 2, 3}, 0}, {0, nil, 0}}))
	require.ErrorIs(t, find(d, "cat").Unsupported, ErrSchema)
	assert.ErrorContains(t, find(d, "cat").Unsupported, "b.parquet")
	require.NoError(t, find(d, "extra").Unsupported)
	assert.Equal(t, columntypes.Absence{Partitions: 1, Names: "a.parquet"}, find(d, "extra").Absent)
	require.NoError(t, find(d, "label").Unsupported)
	assert.InDelta(t, 4.0/12, d.MeanLength["cat"], 1e-9, "levels over rows")

	// A map is one column; of its features' lists the mean is that of the lists that there are.
	d = data(parquetOf(t,
		[]mapped{{Lists: map[int32][]int64{1: {1, 2, 3}, 2: {4}}}, {Floats: map[int32]float32{1: 1}}}))
	c := find(d, "lists")
	assert.Equal(t, 1, c.Absent.Partitions, "a.parquet has it not")
	assert.True(t, c.Map.IsMap())
	assert.True(t, c.List)
	assert.Equal(t, columntypes.Map{Keys: "lists.key_value.key", Values: "lists.key_value.value"}, c.Map)
	assert.Nil(t, find(d, "lists.key_value.key"), "its leaves are not columns")
	assert.False(t, find(d, "floats").List)
	assert.Equal(t, columntypes.Map{Keys: "words.key_value.key", Values: "words.key_value.value", TextKeys: true},
		find(d, "words").Map)
	assert.True(t, find(d, "words.key_value.key").List, "the leaves of a map whose keys are text are columns, too")
	require.NoError(t, find(d, "words.key_value.value").Unsupported)
	assert.Equal(t, columntypes.Map{Keys: "texts.key_value.key", Values: "texts.key_value.value"}, find(d, "texts").Map)
	assert.Equal(t, program.Bytes, find(d, "texts").Kind)
	assert.True(t, find(d, "texts.key_value.key").List, "and those of a map whose values are text")
	assert.InDelta(t, 2*5.0/3/12, d.MeanLength["lists"], 1e-9, "elements over entries, in two of twelve rows")
	d = data(parquetOf(t, []lists{{1, []int64{1, 2, 3}, 0}, {0, nil, 0}}))

	// A column that disagrees is refused when a pipeline names it, and only then.
	spec, err := pipeline.Parse([]byte(doc))
	require.NoError(t, err)
	_, err = resolve.Pipeline(spec, d.Columns)
	require.ErrorIs(t, err, problem.ErrUnsupported)
	assert.ErrorContains(t, err, "it is int64 in a.parquet and a list of int64 in b.parquet")
	spec, err = pipeline.Parse([]byte("name: p\nlabel: {column: label}\ndense:\n  - columns: [label]\n"))
	require.NoError(t, err)
	_, err = resolve.Pipeline(spec, d.Columns)
	require.NoError(t, err)
}

// A data set's pipeline is refused for one partition's sake; the refusal says which, also when it is the first.
func TestColumnsThatCannotBeReadNameTheirPartition(t *testing.T) {
	type page struct{ Seconds int64 }
	type pages struct {
		Label int64          `parquet:"label"`
		Cat   map[int32]page `parquet:"cat"`
	}
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": parquetOf(t, make([]pages, 3))}),
		DriveOptions{}))
	d, err := m.Dataset(t.Context())
	require.NoError(t, err)
	found := false
	for _, c := range d.Columns {
		if c.Unsupported != nil {
			found = true
			require.ErrorContains(t, c.Unsupported, "a.parquet: map of groups")
		}
	}
	assert.True(t, found, "a map to groups has no features: %v", d.Columns)
}

func TestManagersRefused(t *testing.T) {
	a := map[string][]byte{"a.parquet": numbered(t, 0, 10)}
	for name, c := range map[string]struct {
		drives func() []*Drive
		want   error
		says   string
	}{
		"no drive": {func() []*Drive { return nil }, nil, "0 drives with no partition"},
		"two of one name": {func() []*Drive {
			return []*Drive{files(t, write(t, a), DriveOptions{}), files(t, write(t, a), DriveOptions{})}
		}, nil, "two drives are called files"},
		"one name, two partitions": {func() []*Drive {
			return []*Drive{files(t, write(t, a), DriveOptions{}),
				files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 5, 10)}), DriveOptions{Name: "b"})}
		}, ErrSchema, "a.parquet on drive files and on drive b are different files"},
		"two formats": {func() []*Drive {
			return []*Drive{files(t, write(t, a), DriveOptions{}),
				files(t, write(t, map[string][]byte{"b.bin": make([]byte, 160)}),
					DriveOptions{Name: "b", Source: program.CriteoBinary})}
		}, ErrSchema, "b.bin"},
		"malformed rows treated two ways": {func() []*Drive {
			rows := []byte("1" + strings.Repeat("\t", 39) + "\n")
			return []*Drive{
				files(t, write(t, map[string][]byte{"a.tsv": rows}), DriveOptions{Source: program.CriteoTSV}),
				files(t, write(t, map[string][]byte{"b.tsv": rows}),
					DriveOptions{Name: "b", Source: program.CriteoTSV, Text: text.Options{Policy: text.Drop}}),
			}
		}, ErrSchema, "malformed rows differently"},
	} {
		drives := c.drives()
		m, err := NewManager(Options{}, drives...)
		if err == nil { // drives that disagree are fine, as long as no caller takes their partitions as one data set
			_, err = m.Dataset(t.Context())
		}
		require.Error(t, err, name)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
		assert.ErrorContains(t, err, c.says, name)
		for _, d := range drives {
			require.NoError(t, d.Close(), "drives that were refused stay the caller's")
		}
	}
}

// TestAReplicaIsOnePartition checks that a partition on two drives is in the data set once, and that both drives serve
// it alike.
func TestAReplicaIsOnePartition(t *testing.T) {
	b := map[string][]byte{"a.parquet": numbered(t, 0, 33)}
	one, err := OpenDrive(t.Context(), onDrive(t, b), DriveOptions{Name: "one", SLM: 8 << 20})
	require.NoError(t, err)
	m := openManager(t, one, files(t, write(t, b), DriveOptions{Name: "two", Engine: EngineCPU}))
	data, err := m.Dataset(t.Context())
	require.NoError(t, err)
	require.Len(t, data.Manifest.Partitions, 1)
	assert.Equal(t, []int{0}, data.Drives[0].Partitions)
	assert.Equal(t, []int{0}, data.Drives[1].Partitions)
	assert.True(t, data.Drives[0].Compute)
	assert.False(t, data.Drives[1].Compute)
	j, plan := prepare(t, m, dataset.Options{})
	split, err := plan.Split(0)
	require.NoError(t, err)
	var first []*tensor.MiniBatch
	for _, name := range []string{"one", "two"} {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: name, Split: split})
		require.NoError(t, err)
		var got []*tensor.MiniBatch
		for {
			mb, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			got = append(got, mb.Clone())
			mb.Release()
		}
		require.NoError(t, s.Close())
		if first == nil {
			first = got
		}
		require.Len(t, got, 4)
		for i := range got {
			assert.Equal(t, first[i].Name, got[i].Name)
			assert.Empty(t, tensor.Diff(first[i], got[i]))
		}
	}
}

func TestDrivesRefused(t *testing.T) {
	good := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 10)})[0]
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 10), "notes.txt": []byte("no Parquet")})
	dir := t.TempDir()
	for name, c := range map[string]struct {
		open func(ctx context.Context) (*Drive, error)
		says string
	}{
		"a file that is not there": {func(ctx context.Context) (*Drive, error) {
			return OpenFiles(ctx, source.ParseLocations(dir+"/none"), DriveOptions{})
		}, "none"},
		"the CPU's file that is not there": {func(ctx context.Context) (*Drive, error) {
			return OpenFiles(ctx, source.ParseLocations(dir+"/none"), DriveOptions{Engine: EngineCPU})
		}, "none"},
		"a folder": {func(ctx context.Context) (*Drive, error) {
			return OpenFiles(ctx, source.ParseLocations(dir), DriveOptions{})
		},
			dir},
		"a folder for the CPU": {func(ctx context.Context) (*Drive, error) {
			return OpenFiles(ctx, source.ParseLocations(dir), DriveOptions{Engine: EngineCPU})
		}, "not a regular file"},
		"one base name": {func(ctx context.Context) (*Drive, error) {
			return OpenFiles(ctx, source.ParseLocations(good, good), DriveOptions{Engine: EngineCPU})
		}, "is there twice"},
		"no drive": {func(ctx context.Context) (*Drive, error) {
			return OpenDrive(ctx, "file:"+dir+"/d", DriveOptions{})
		}, "the drive does not exist"},
		"no URI": {func(ctx context.Context) (*Drive, error) { return OpenDrive(ctx, dir, DriveOptions{}) },
			"malformed"},
		"a member that is no Parquet": {func(ctx context.Context) (*Drive, error) {
			return OpenDrive(ctx, uri, DriveOptions{})
		}, "notes.txt: partition cannot be read"},
		"a member that is not there": {func(ctx context.Context) (*Drive, error) {
			return OpenDrive(ctx, uri, DriveOptions{Members: []string{"a.parquet", "b*"}})
		}, `"b*"`},
		"no computation": {func(ctx context.Context) (*Drive, error) {
			return OpenDrive(ctx, uri, DriveOptions{Engine: EngineDrive, Device: sdk.DeviceOptions{Plain: true}})
		}, "--engine cpu"},
	} {
		_, err := c.open(t.Context())
		require.Error(t, err, name)
		assert.ErrorContains(t, err, c.says, name)
	}
	// Every refused call gave the drive back.
	d, err := OpenDrive(t.Context(), uri, DriveOptions{Members: []string{"*.parquet"}})
	require.NoError(t, err)
	assert.Len(t, d.Partitions(), 1)
	assert.Equal(t, uri, d.Name())
	assert.True(t, d.Computes())
	assert.NotNil(t, d.Device())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
}

func TestParseEngine(t *testing.T) {
	for _, s := range []string{"drive", "cpu", "reference"} {
		e, err := ParseEngine(s)
		require.NoError(t, err)
		assert.EqualValues(t, s, e)
	}
	for _, s := range []string{"", "CPU", "rtl"} {
		_, err := ParseEngine(s)
		require.ErrorContains(t, err, "want reference, cpu or drive")
	}
}

// TestADriveInAFileHasThreads checks the engine threads, the memory and the streams of a drive in a file: the URI comes
// before the options, and memory that neither names follows the threads.
func TestADriveInAFileHasThreads(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 10)})
	for _, c := range []struct {
		query            string
		o                DriveOptions
		threads, streams int
		memory           uint64
	}{
		{"", DriveOptions{}, 1, 2, csd.DefaultSLM},
		{"", DriveOptions{Threads: 1, Jobs: 2}, 1, 2, csd.DefaultSLM},
		{"", DriveOptions{Threads: 2, Jobs: 2}, 2, 3, csd.DefaultSLM},
		{"", DriveOptions{Threads: 2, Jobs: 3}, 2, 3, 3 * MemoryOfStreams(3)},
		{"", DriveOptions{Threads: 2}, 2, 3, csd.DefaultSLM}, // three streams want less
		{"", DriveOptions{Threads: 7}, 7, 8, MemoryOfStreams(8)},
		{"?threads=3", DriveOptions{Jobs: 2}, 3, 4, 2 * MemoryOfStreams(4)},
		{"?threads=3", DriveOptions{Threads: 9, Jobs: 2}, 3, 4, 2 * MemoryOfStreams(4)},
		{"?slm=400MiB", DriveOptions{Threads: 9}, 9, 3, MemoryOfStreams(3)},
		{"", DriveOptions{Threads: 4, Streams: 9}, 4, 9, MemoryOfStreams(9)},
		{"", DriveOptions{Threads: 2, SLM: 300 << 20, Jobs: 4}, 2, 2, 1200 << 20},
	} {
		d, err := OpenDrive(t.Context(), uri+c.query, c.o)
		require.NoError(t, err)
		assert.Equal(t, c.threads, d.threads(), "%s %+v", c.query, c.o)
		assert.Equal(t, c.streams, d.streams(), "%s %+v", c.query, c.o)
		assert.Equal(t, c.memory, d.Device().Compute().SLMSize(), "%s %+v", c.query, c.o)
		require.NoError(t, d.Close())
	}
	huge := DriveOptions{Threads: 2, Jobs: math.MaxInt}
	_, memory := huge.FileDriveEngine(sdk.URI{Scheme: "file"})
	assert.EqualValues(t, csd.MaxSLM, memory)
	for _, o := range []DriveOptions{{Engine: EngineCPU, Threads: 4}, {Engine: EngineReference, Threads: 4},
		{Accelerator: "mem:", Threads: 4}} {
		threads, memory := o.FileDriveEngine(sdk.URI{Scheme: "file"})
		assert.Zero(t, threads, "%+v: the drive does not compute", o)
		assert.Zero(t, memory)
	}
}

// TestStreamsFollowMemory checks that a drive has two streams where its memory is enough for two, and that the CPU has
// as many as threads.
func TestStreamsFollowMemory(t *testing.T) {
	paths := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 10)})
	for _, c := range []struct {
		slm  uint64
		o    DriveOptions
		want int
	}{
		{MemoryOfStreams(2), DriveOptions{}, 2}, {MemoryOfStreams(2) - 4096, DriveOptions{}, 1},
		{0, DriveOptions{}, 2}, {0, DriveOptions{Threads: 2}, 3}, {0, DriveOptions{Threads: 9}, 10},
		{MemoryOfStreams(4), DriveOptions{Threads: 9}, 4},
		{8 << 20, DriveOptions{Streams: 3}, 3},
		{0, DriveOptions{Engine: EngineCPU, Threads: 3}, 3}, {0, DriveOptions{Engine: EngineCPU}, 1},
	} {
		c.o.SLM = c.slm
		d, err := OpenFiles(t.Context(), source.ParseLocations(paths...), c.o)
		require.NoError(t, err)
		assert.Equal(t, c.want, d.streams(), "%+v", c)
		require.NoError(t, d.Close())
	}
}

// TestAnImageIsForADriveMadeOfFiles opens files with an image and an engine that would not run it.
func TestAnImageIsForADriveMadeOfFiles(t *testing.T) {
	paths := write(t, map[string][]byte{"p.parquet": numbered(t, 0, 10)})
	b, err := stock.Image()
	require.NoError(t, err)
	for want, o := range map[string]DriveOptions{
		"":                          {Engine: EngineDrive},
		"use the engine drive":      {Engine: EngineCPU},
		"for the drive made of the": {Engine: EngineDrive, Accelerator: "mem:?size=1MiB"},
	} {
		o.Image = b
		d, err := OpenFiles(t.Context(), source.ParseLocations(paths...), o)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		assert.True(t, d.Computes())
		require.NoError(t, d.Close())
	}
}
