package host

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/inventory"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// named makes a job over a manifest of what some drives hold, as a control plane does: the partitions of the given
// names, and those of others.
func named(t testing.TB, m *Manager, text string, o dataset.Options, names []string,
	others ...dataset.Partition) (*api.Job, *dataset.Plan) {
	t.Helper()
	spec, err := pipeline.Parse([]byte(text))
	require.NoError(t, err)
	inv, err := m.Inventory()
	require.NoError(t, err)
	list := others
	var schema dataset.Digest
	for _, name := range names {
		for _, p := range inv.Partitions {
			if p.Name == name {
				list, schema = append(list, p.Partition), p.Schema
			}
		}
	}
	manifest, err := dataset.NewManifest(list)
	require.NoError(t, err)
	var resolved *resolve.Resolved
	for _, s := range inv.Schemas {
		if s.Digest == schema {
			resolved, err = resolve.Pipeline(spec, s.Columns)
			require.NoError(t, err)
			resolved.Malformed = s.Malformed
		}
	}
	require.NotNil(t, resolved)
	o.Batch = 10
	plan, err := dataset.NewPlan(manifest, o)
	require.NoError(t, err)
	digest, err := manifest.Digest()
	require.NoError(t, err)
	j := &api.Job{Pipeline: spec, Plan: plan.Options(), Manifest: manifest}
	j.Digest, err = dataset.JobDigest(digest, resolved.Canonical(), j.Plan)
	require.NoError(t, err)
	return j, plan
}

const listDoc = "name: l\nbatch: 10\nlabel: {column: label}\nsparse:\n  - columns: [cat]\n    ops: [sigrid_hash: " +
	"{salt: 0, max: 100}]\n"

// TestJobsShareADrive checks that a drive takes as many jobs as it was opened for, each with its part of the memory.
func TestJobsShareADrive(t *testing.T) {
	d, err := OpenDrive(t.Context(),
		onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 45), "b.parquet": numbered(t, 100, 20)})+"?slm=64MiB",
		DriveOptions{Name: "d", Jobs: 2})
	require.NoError(t, err)
	m := openManager(t, d)
	assert.Equal(t, 1, m.Status(d).Streams)
	var open []api.Stream
	for i, names := range [][]string{{"a.parquet"}, {"b.parquet"}, {"a.parquet", "b.parquet"}} {
		j, plan := named(t, m, doc, dataset.Options{}, names)
		err := m.Prepare(t.Context(), j)
		if i == 2 {
			require.ErrorIs(t, err, sdk.ErrSLMFull)
			continue
		}
		require.NoError(t, err)
		split, err := plan.Split(0)
		require.NoError(t, err)
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "d", Split: split})
		require.NoError(t, err)
		open = append(open, s)
	}
	assert.Equal(t, 2, d.Running())
	for _, s := range open {
		take(t, s)
		require.NoError(t, s.Close())
	}
}

// TestSeveralDataSets checks that a node may hold partitions that have no common schema, and serves jobs over each
// kind.
func TestSeveralDataSets(t *testing.T) {
	l := make([]lists, 25)
	for i := range l {
		l[i].Cat = make([]int64, i%3)
	}
	d, err := OpenDrive(t.Context(), onDrive(t, map[string][]byte{
		"a.parquet": numbered(t, 0, 45), "b.parquet": numbered(t, 100, 20), "l.parquet": parquetOf(t, l),
	}), DriveOptions{Name: "d"})
	require.NoError(t, err)
	m := openManager(t, d)
	// The manifest names a partition that is on another node: indices are the manifest's, not the drive's.
	far := dataset.Partition{Name: "0-elsewhere", Bytes: 1000, Rows: 60, RowGroups: []int64{60},
		Content: dataset.Digest{1}}
	j, plan := named(t, m, doc, dataset.Options{Shuffle: dataset.ShuffleNone}, []string{"a.parquet", "b.parquet"}, far)
	require.NoError(t, m.Prepare(t.Context(), j))
	other, otherPlan := named(t, m, listDoc, dataset.Options{Shuffle: dataset.ShuffleNone}, []string{"l.parquet"})
	require.ErrorIs(t, m.Prepare(t.Context(), other), sdk.ErrSLMFull,
		"the first job has all memory that the drive may use")
	var got []int64
	for split := range plan.All() {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "d", Split: split})
		if split.Partition == 0 {
			require.ErrorIs(t, err, ErrNotHeld)
			assert.ErrorContains(t, err, "0-elsewhere")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, 1, d.Running())
		rows, numbers := take(t, s)
		assert.Equal(t, split.FirstFragment, numbers[0])
		got = append(got, rows...)
		require.NoError(t, s.Close())
	}
	assert.Len(t, got, 65)
	assert.EqualValues(t, 100, got[45])
	assert.Zero(t, d.Running())
	require.NoError(t, m.Finish(t.Context(), j.Digest))
	require.NoError(t, m.Prepare(t.Context(), other))
	assert.Equal(t, []dataset.Digest{other.Digest}, m.Jobs())
	assert.EqualValues(t, 3, otherPlan.MiniBatches())
	p, err := m.Plan(other.Digest, 4)
	require.NoError(t, err)
	assert.EqualValues(t, 4, p.Options().Epoch)
	_, err = m.Plan(j.Digest, 0)
	require.ErrorIs(t, err, api.ErrUnknownJob)
}

func TestPrepareRefuses(t *testing.T) {
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 45)}), DriveOptions{}))
	good, _ := named(t, m, doc, dataset.Options{}, []string{"a.parquet"})
	changed := func(change func(*dataset.Partition)) *api.Job {
		p := good.Manifest.Partitions[0]
		change(&p)
		manifest, err := dataset.NewManifest([]dataset.Partition{p})
		require.NoError(t, err)
		j := *good
		j.Manifest = manifest
		return &j
	}
	for name, c := range map[string]struct {
		job  *api.Job
		want error
		says string
	}{
		"another footer": {changed(func(p *dataset.Partition) { p.Content[0]++ }), ErrChanged,
			"a.parquet: the partition is not the one of the job's manifest: its footer"},
		"other bytes": {changed(func(p *dataset.Partition) { p.Bytes++ }), ErrChanged, "bytes"},
		"other rows": {changed(func(p *dataset.Partition) { p.Rows++; p.RowGroups = []int64{p.Rows} }), ErrChanged,
			"46"},
		"another name": {changed(func(p *dataset.Partition) { p.Name = "z" }), ErrNotHeld,
			"none of the job's 1 partitions"},
		"another digest": {&api.Job{Digest: dataset.Digest{1}, Pipeline: good.Pipeline, Plan: good.Plan,
			Manifest: good.Manifest}, ErrDigest, "as new as"},
	} {
		err := m.Prepare(t.Context(), c.job)
		require.ErrorIs(t, err, c.want, name)
		assert.ErrorContains(t, err, c.says, name)
	}
	require.NoError(t, m.Prepare(t.Context(), good))
}

// TestDrivesOfSeveralFormats checks that drives of several formats are not a common data set, and that each is one.
func TestDrivesOfSeveralFormats(t *testing.T) {
	m := openManager(t, files(t, write(t, map[string][]byte{"a.parquet": numbered(t, 0, 45)}), DriveOptions{}),
		files(t, write(t, map[string][]byte{"b.bin": make([]byte, 160*30)}),
			DriveOptions{Name: "text", Source: program.CriteoBinary}))
	_, err := m.Dataset(t.Context())
	require.ErrorIs(t, err, ErrSchema)
	inv, err := m.Inventory()
	require.NoError(t, err)
	assert.Len(t, inv.Schemas, 2)
	for names, text := range map[string]string{"a.parquet": doc,
		"b.bin": "name: b\nlabel: {column: label}\nsparse:\n  - columns: [cat_0]\n"} {
		j, plan := named(t, m, text, dataset.Options{}, []string{names})
		require.NoError(t, m.Prepare(t.Context(), j))
		split, err := plan.Split(0)
		require.NoError(t, err)
		drive := map[string]string{"a.parquet": "files", "b.bin": "text"}[names]
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: drive, Split: split})
		require.NoError(t, err)
		rows, _ := take(t, s)
		assert.Len(t, rows, int(split.Rows))
		require.NoError(t, s.Close())
		list, err := m.Report(t.Context(), j.Digest)
		require.NoError(t, err)
		assert.Len(t, list, 1, "a drive without a partition of the job has no part in it")
	}
}

// TestRescanFindsWhatWasAppended checks that partitions that are put on a drive while a job runs are in the inventory
// after a rescan, and that the job goes on.
func TestRescanFindsWhatWasAppended(t *testing.T) {
	var skipped []string
	d, err := OpenDrive(t.Context(),
		onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40), "notes.txt": []byte("no Parquet")}),
		DriveOptions{Name: "d", SLM: 8 << 20, Members: []string{"*.parquet", "notes.txt", "none*"},
			Skip: func(member string, err error) {
				require.ErrorIs(t, err, partition.ErrUnreadable)
				skipped = append(skipped, member)
			}})
	require.NoError(t, err)
	m := openManager(t, d)
	require.Len(t, d.Partitions(), 1)
	assert.Equal(t, []string{"notes.txt"}, skipped)
	before, err := m.Inventory()
	require.NoError(t, err)
	j, plan := named(t, m, doc, dataset.Options{Shuffle: dataset.ShuffleNone}, []string{"a.parquet"})
	require.NoError(t, m.Prepare(t.Context(), j))
	split, err := plan.Split(0)
	require.NoError(t, err)
	s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "d", Split: split})
	require.NoError(t, err)
	b := numbered(t, 500, 30)
	free := m.Status(d).Free
	require.NoError(t, d.Volume().Put(t.Context(), "b.parquet", int64(len(b)), bytes.NewReader(b)))
	same, err := m.Inventory()
	require.NoError(t, err)
	assert.Same(t, before, same, "it is taken once")
	require.NoError(t, m.Rescan(t.Context()))
	after, err := m.Inventory()
	require.NoError(t, err)
	assert.NotEqual(t, before.Digest, after.Digest)
	require.Len(t, after.Partitions, 2)
	assert.Equal(t, "b.parquet", after.Partitions[1].Name)
	assert.Equal(t, after.Partitions[0].Schema, after.Partitions[1].Schema)
	require.Len(t, after.Schemas, 1)
	assert.Equal(t, []inventory.Holding{{Drive: "d", Partitions: []string{"a.parquet", "b.parquet"}}}, after.Drives)
	assert.Less(t, m.Status(d).Free, free)
	rows, _ := take(t, s)
	assert.Len(t, rows, 40)
	require.NoError(t, s.Close())
}

// TestAMemberReplaced checks that a later member of the same name hides the one of the job's manifest.
func TestAMemberReplaced(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40)})
	d, err := OpenDrive(t.Context(), uri, DriveOptions{Name: "d", SLM: 8 << 20})
	require.NoError(t, err)
	m := openManager(t, d)
	j, plan := named(t, m, doc, dataset.Options{}, []string{"a.parquet"})
	require.NoError(t, m.Prepare(t.Context(), j))
	split, err := plan.Split(0)
	require.NoError(t, err)
	old := d.Partitions()[0]
	// Put refuses a name that exists; another host's tar -r does not.
	p, err := partition.Open(t.Context(), old.Name, old, old.Size, program.Parquet,
		partition.Options{Extents: []partition.Extent{{Device: 1 << 20, Len: old.Size}}})
	require.NoError(t, err)
	require.NoError(t, d.hold([]*partition.Partition{p}))
	require.ErrorIs(t, d.CheckUnchanged(old), ErrChanged)
	require.NoError(t, m.Rescan(t.Context()))
	assert.Equal(t, old.Extents, d.Partitions()[0].Extents)
	s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "d", Split: split})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestTextIsLookedAtAtBothEnds checks the fingerprint of a text. It restores the file's time of writing, so that the
// fingerprint alone shows the change.
func TestTextIsLookedAtAtBothEnds(t *testing.T) {
	then := time.Unix(1_700_000_000, 5)
	for _, rows := range []int{10, 1000} {
		data := make([]byte, rows*160)
		path := write(t, map[string][]byte{"a.bin": data})[0]
		rewrite := func() {
			require.NoError(t, os.WriteFile(path, data, 0o644))
			require.NoError(t, os.Chtimes(path, then, then))
		}
		rewrite()
		d := files(t, []string{path}, DriveOptions{Source: program.CriteoBinary})
		p := d.Partitions()[0]
		require.NoError(t, d.CheckUnchanged(p))
		for _, at := range []int{0, len(data) - 1} {
			data[at]++
			rewrite()
			require.ErrorIs(t, d.CheckUnchanged(p), ErrChanged)
			data[at]--
			rewrite()
			require.NoError(t, d.CheckUnchanged(p))
		}
		require.NoError(t, d.Close())
	}
}

// TestAFileThatChangesDuringALoop checks that a file of the same length and footer that is written in place, or renamed
// over the one that is read, ends the split with an error that names it, and every later split. A file that is only
// removed is read to its end, unless its descriptor was closed meanwhile for another file's.
func TestAFileThatChangesDuringALoop(t *testing.T) {
	then := time.Unix(1_700_000_000, 5)
	overwrite := func(t *testing.T, path string, b []byte) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		later := then.Add(time.Nanosecond)
		require.NoError(t, os.Chtimes(path, later, later))
	}
	for way, change := range map[string]func(t *testing.T, path string, b []byte){
		"written in place": overwrite,
		"replaced": func(t *testing.T, path string, b []byte) {
			require.NoError(t, os.WriteFile(path+".new", b, 0o644))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"removed": func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) },
	} {
		for i, engine := range []Engine{EngineDrive, EngineCPU, EngineReference, EngineDrive, EngineCPU, EngineReference} {
			closed := i >= 3
			t.Run(fmt.Sprint(way, " ", engine, " ", closed), func(t *testing.T) {
				const rows = 5000 // more than a stream reads ahead
				data, other := numbered(t, 200, rows), numbered(t, 210, rows)
				paths := write(t, map[string][]byte{"a.parquet": data, "b.parquet": numbered(t, 0, 10)})
				path := paths[0]
				require.NoError(t, os.Chtimes(path, then, then))
				o := DriveOptions{Engine: engine}
				if closed {
					o.Files = openfiles.New(1)
				}
				d := files(t, paths, o)
				m := openManager(t, d)
				j, plan := prepare(t, m, dataset.Options{Batch: 10, SplitBatches: rows})
				split, err := plan.Split(0)
				require.NoError(t, err)
				request := api.SplitRequest{Job: j.Digest, Drive: d.Name(), Split: split}
				s, err := m.Open(t.Context(), request)
				require.NoError(t, err)
				mb, err := s.Next(t.Context())
				require.NoError(t, err)
				mb.Release()
				if closed {
					require.NoError(t, d.CheckUnchanged(d.Partitions()[1]))
				}
				change(t, path, other)
				for err == nil {
					if mb, err = s.Next(t.Context()); err == nil {
						mb.Release()
					}
				}
				require.NoError(t, s.Close())
				if way == "removed" && !closed {
					require.ErrorIs(t, err, io.EOF)
					require.NoError(t, d.CheckUnchanged(d.Partitions()[0]))
					return
				}
				var changed *ChangedError
				require.ErrorAs(t, err, &changed)
				assert.Equal(t, "a.parquet", changed.Partition)
				require.ErrorContains(t, err, path)
				_, err = m.Open(t.Context(), request)
				require.ErrorIs(t, err, ErrChanged)
				if way == "written in place" { // and so has its first inode
					require.NoError(t, os.WriteFile(path, data, 0o644))
					require.NoError(t, os.Chtimes(path, then, then))
					s, err = m.Open(t.Context(), request)
					require.NoError(t, err, "no place was lost")
					require.NoError(t, s.Close())
				}
			})
		}
	}
}

// TestPartitionsOfTheSameFooter checks that files which differ in the bytes of rows alone are different partitions, and
// that a copy elsewhere is the same.
func TestPartitionsOfTheSameFooter(t *testing.T) {
	data := numbered(t, 0, 105)
	other := bytes.Clone(data)
	other[100] ^= 1 // in a page of the first row group
	describe := func(b []byte) (dataset.Partition, api.Stamp) {
		d := files(t, write(t, map[string][]byte{"a.parquet": b}), DriveOptions{Engine: EngineCPU})
		stamp, ok := d.stamp(d.Partitions()[0])
		assert.True(t, ok)
		described := d.Partitions()[0].Describe()
		require.NoError(t, d.Close())
		return described, stamp
	}
	first, stamp := describe(data)
	again, elsewhere := describe(data)
	assert.Equal(t, first, again)
	assert.NotEqual(t, stamp.Place, elsewhere.Place)
	changed, _ := describe(other)
	assert.NotEqual(t, first, changed)
	assert.Contains(t, differs(changed, first), "samples of its rows")
}

// TestDrivesComeAndGo checks that an added drive serves jobs that were prepared before, and that a removed drive does
// not, until it is added again.
func TestDrivesComeAndGo(t *testing.T) {
	content := map[string][]byte{"a.parquet": numbered(t, 0, 40)}
	m := openManager(t, files(t, write(t, content), DriveOptions{Name: "one"}))
	j, plan := named(t, m, doc, dataset.Options{}, []string{"a.parquet"})
	require.NoError(t, m.Prepare(t.Context(), j))
	split, err := plan.Split(0)
	require.NoError(t, err)
	run := func(drive string) error {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: drive, Split: split})
		if err != nil {
			return err
		}
		rows, _ := take(t, s)
		assert.Len(t, rows, 40)
		return s.Close()
	}
	require.NoError(t, run("one"))
	require.ErrorIs(t, run("two"), api.ErrUnknownDrive)
	uri := onDrive(t, content)
	for range 2 {
		d, err := OpenDrive(t.Context(), uri, DriveOptions{Name: "two", SLM: 8 << 20})
		require.NoError(t, err)
		require.NoError(t, m.AddDrive(d))
		require.ErrorContains(t, m.AddDrive(d), "two drives are called two")
		require.NoError(t, run("two"))
		require.NoError(t, m.Restart(j.Digest, "two"))
		require.NoError(t, run("two"), "a new processor")
		list, err := m.Report(t.Context(), j.Digest)
		require.NoError(t, err)
		assert.Len(t, list, 2)
		require.NoError(t, m.RemoveDrive("two"))
		require.ErrorIs(t, run("two"), api.ErrUnknownDrive)
	}
	require.ErrorIs(t, m.RemoveDrive("two"), api.ErrUnknownDrive)
	list, err := m.Report(t.Context(), j.Digest)
	require.NoError(t, err)
	assert.Len(t, list, 1)
}

// TestASuspendedDriveHoldsNothing checks that the memory of a suspended drive is free for another image, and that jobs
// may be prepared meanwhile and go on afterwards.
func TestASuspendedDriveHoldsNothing(t *testing.T) {
	d, err := OpenDrive(t.Context(),
		onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40), "b.parquet": numbered(t, 50, 40)})+"?slm=32MiB",
		DriveOptions{Name: "d"})
	require.NoError(t, err)
	m := openManager(t, d)
	j, plan := named(t, m, doc, dataset.Options{}, []string{"a.parquet"})
	require.NoError(t, m.Prepare(t.Context(), j))
	require.NoError(t, m.Suspend("d"))
	slm, err := d.Device().ReserveSLM(t.Context(), 32<<20)
	require.NoError(t, err, "all of it is free")
	require.NoError(t, slm.Release(t.Context()))
	other, _ := named(t, m, doc, dataset.Options{}, []string{"b.parquet"})
	require.NoError(t, m.Prepare(t.Context(), other))
	require.NoError(t, m.Finish(t.Context(), other.Digest))
	split, err := plan.Split(0)
	require.NoError(t, err)
	order := api.SplitRequest{Job: j.Digest, Drive: "d", Split: split}
	_, err = m.Open(t.Context(), order)
	require.ErrorIs(t, err, ErrSuspended)
	require.NoError(t, m.Resume(t.Context(), "d"))
	s, err := m.Open(t.Context(), order)
	require.NoError(t, err)
	take(t, s)
	require.NoError(t, s.Close())
	assert.Len(t, m.Status(d).Image, 64)
	require.ErrorIs(t, m.Suspend("x"), api.ErrUnknownDrive)
	require.ErrorIs(t, m.Resume(t.Context(), "x"), api.ErrUnknownDrive)
}

// TestPIsKept checks that P is kept over a restart for the same drive, pipeline and image, and that again measures it
// again.
func TestPIsKept(t *testing.T) {
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40)})
	state := filepath.Join(t.TempDir(), "state", "rates.json")
	open := func() (*Manager, *Drive) {
		d, err := OpenDrive(t.Context(), uri, DriveOptions{Name: "d", SLM: 8 << 20})
		require.NoError(t, err)
		m, err := NewManager(Options{MeasureTime: time.Millisecond, Rates: state}, d)
		require.NoError(t, err)
		return m, d
	}
	m, d := open()
	j, _ := named(t, m, doc, dataset.Options{}, []string{"a.parquet"})
	require.NoError(t, m.Prepare(t.Context(), j))
	first, kept, err := m.Rate(t.Context(), j.Digest, "d", RateOptions{})
	require.NoError(t, err)
	assert.False(t, kept)
	second, kept, err := m.Rate(t.Context(), j.Digest, "d", RateOptions{})
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Equal(t, first, second)
	status := m.Status(d)
	assert.NotEmpty(t, status.UUID)
	assert.NotEmpty(t, status.Image)
	require.Len(t, status.Rates, 1)
	for _, p := range status.Rates {
		assert.Equal(t, first.RowsPerSecond, p)
	}
	busy, err := m.Busy(t.Context(), d)
	require.NoError(t, err)
	assert.Positive(t, busy)
	require.NoError(t, m.Close())

	m, d = open()
	require.NoError(t, m.Prepare(t.Context(), j))
	second, kept, err = m.Rate(t.Context(), j.Digest, "d", RateOptions{})
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Equal(t, first, second)
	var records []map[string]any
	b, err := os.ReadFile(state)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &records))
	require.Len(t, records, 1, "the record says how P was measured")
	assert.Equal(t, "drive", records[0]["engine"])
	assert.Equal(t, "vendor", records[0]["commands"])
	assert.InDelta(t, 1, records[0]["threads"], 0)
	assert.InDelta(t, first.Rows, records[0]["rows"], 0)
	assert.InDelta(t, first.Spread, records[0]["spread_share"], 0)
	assert.Equal(t, first.Settled, records[0]["settled"])
	assert.NotEmpty(t, records[0]["measured"])
	third, kept, err := m.Rate(t.Context(), j.Digest, "d", RateOptions{Again: true})
	require.NoError(t, err)
	assert.False(t, kept)
	assert.NotEqual(t, first, third)
	d.addRunning(1) // as if a split ran
	_, _, err = m.Rate(t.Context(), j.Digest, "d", RateOptions{Again: true})
	require.NoError(t, err)
	d.addRunning(-1)
	fourth, kept, err := m.Rate(t.Context(), j.Digest, "d", RateOptions{})
	require.NoError(t, err)
	assert.True(t, kept)
	assert.Equal(t, third, fourth, "what was measured beside others is not kept")
	require.NoError(t, m.Close())
}

// TestPartitionsOfSeveralTypes checks that partitions which keep a column in several units, scales, storages and kinds
// make the right ids on every engine, also if each lies on a drive of its own.
func TestPartitionsOfSeveralTypes(t *testing.T) {
	first := parquetOf(t, []struct {
		Time  int64 `parquet:"time,timestamp(millisecond)"`
		ID    int64 `parquet:"id"`
		Price int32 `parquet:"price,decimal(2:9)"`
	}{{1600000000123, 5, 150}, {-1, 1 << 60, -25}})
	four := 4.0
	second := parquetOf(t, []struct {
		Time  int64    `parquet:"time,timestamp(microsecond)"`
		ID    *float64 `parquet:"id"`
		Price int64    `parquet:"price,decimal(3:12)"`
	}{{1600000000123456, &four, 1500}, {86400e6, nil, -250}})
	const text = "name: p\nbatch: 10\nsparse:\n  - {columns: [time], ops: [to_seconds]}\n  - {columns: [id]}\n" +
		"  - {columns: [price], ops: [bucketize: {borders: [0, 1.4, 1.6]}]}\n"
	contents := map[string][]byte{"a.parquet": first, "b.parquet": second}
	want := map[string][]int64{
		"a.parquet": {1600000000, -1, 5, 1 << 60, 2, 0}, "b.parquet": {1600000000, 86400, 4, 2, 0},
	}
	onOne := onDrive(t, map[string][]byte{"a.parquet": first})
	onOther := onDrive(t, map[string][]byte{"b.parquet": second})
	for name, open := range map[string]func() []*Drive{
		"reference": func() []*Drive {
			return []*Drive{files(t, write(t, contents), DriveOptions{Name: "d", Engine: EngineReference})}
		},
		"cpu": func() []*Drive {
			return []*Drive{files(t, write(t, contents), DriveOptions{Name: "d", Engine: EngineCPU})}
		},
		"two drives": func() (list []*Drive) {
			for i, uri := range []string{onOne, onOther} {
				d, err := OpenDrive(t.Context(), uri, DriveOptions{Name: string(rune('d' + i))})
				require.NoError(t, err)
				list = append(list, d)
			}
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			drives := open()
			m := openManager(t, drives...)
			spec, err := pipeline.Parse([]byte(text))
			require.NoError(t, err)
			data, err := m.Dataset(t.Context())
			require.NoError(t, err)
			plan, err := dataset.NewPlan(data.Manifest, dataset.Options{Batch: 10, Shuffle: dataset.ShuffleNone})
			require.NoError(t, err)
			j := &api.Job{Digest: dataset.Digest{1}, Pipeline: spec, Plan: plan.Options()}
			require.NoError(t, m.Prepare(t.Context(), j))
			for split := range plan.All() {
				partition := data.Manifest.Partitions[split.Partition].Name
				holder := drives[0].Name()
				if partition == "b.parquet" {
					holder = drives[len(drives)-1].Name()
				}
				s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: holder, Split: split})
				require.NoError(t, err)
				ids, _ := take(t, s)
				require.NoError(t, s.Close())
				assert.Equal(t, want[partition], ids, partition)
			}
		})
	}
}

// untyped is the type null of a column, whose values are kept as int32, as Arrow writes it.
type untyped struct{ pq.Type }

func (untyped) LogicalType() *format.LogicalType { return pq.NullType.LogicalType() }

// nullsOf makes a file whose only column, of the type null, has nulls.
func nullsOf(t *testing.T, column string, rows int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewWriter(&b, pq.NewSchema("rows", pq.Group{column: pq.Optional(pq.Leaf(untyped{pq.Int32Type}))}))
	for range rows {
		_, err := w.WriteRows([]pq.Row{{pq.NullValue().Level(0, 0, 0)}})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestEnginesAgree checks that every engine makes the same mini-batches of a file, or refuses it for the same reason.
func TestEnginesAgree(t *testing.T) {
	type number struct {
		X *float64 `parquet:"x"`
	}
	type large struct {
		U uint64 `parquet:"u"`
	}
	type scored struct {
		IDs    []int64  `parquet:"ids,list"`
		Scores []uint64 `parquet:"scores,list"`
	}
	type words struct {
		C []int64 `parquet:"c,list"`
	}
	one, nan, infinite, half := 1.0, math.NaN(), math.Inf(1), 4.5
	reals := map[string][]byte{"a.parquet": parquetOf(t, []number{{&one}, {&nan}, {nil}, {&infinite}})}
	larges := map[string][]byte{"a.parquet": parquetOf(t, []large{{1<<63 - 1}, {1 << 63}, {5}})}
	scores := func(greatest uint64) map[string][]byte {
		return map[string][]byte{"a.parquet": parquetOf(t, []scored{{[]int64{7, 8}, []uint64{2, greatest}}})}
	}
	damaged := bytes.Clone(larges["a.parquet"])
	damaged[4] ^= 0x55 // the first byte of the first page's header
	const noNumber = "18446744073709551615"
	for name, c := range map[string]struct {
		contents map[string][]byte
		text     string
		options  dataset.Options
		want     string   // the mini-batches, one a line
		refused  []string // parts of the error; nil if want is made
	}{
		"a NaN in dense": {contents: reals, text: "dense: [{columns: [x], ops: [fill_null: 0]}]",
			refused: []string{"x", "NaN", "fill_nan"}},
		"a NaN that is filled": {contents: reals, text: "dense: [{columns: [x], ops: [fill_null: 0, fill_nan: 3]}]",
			want: "dense [1 3 0 +Inf]\n"},
		"a NaN that is kept": {contents: reals, text: "dense: [{columns: [x], nan: keep, ops: [fill_null: 0]}]",
			want: "dense [1 NaN 0 +Inf]\n"},
		"a NaN in the label": {contents: reals, text: "label: {column: x, null: 0}\nsparse: [{columns: [x], ops: " +
			"[bucketize: {borders: [0]}]}]", refused: []string{"label", "NaN"}},
		"an infinite label": {contents: reals, text: "label: {column: x, null: 0, nan: 0}\nsparse: [{columns: [x], " +
			"ops: [bucketize: {borders: [0]}]}]", refused: []string{"label", "infinit"}},
		"a uint64 in dense": {contents: larges, text: "dense: [{columns: [u]}]", refused: []string{"u",
			"9223372036854775808", "cast: float64"}},
		"a uint64 that cast takes": {contents: larges, text: "dense: [{columns: [u], ops: [cast: float64]}]",
			want: "dense [9.223372e+18 9.223372e+18 5]\n"},
		"a uint64 that cast takes for another operator": {contents: larges, text: "sparse: [{columns: [u], ops: " +
			"[cast: float64, bucketize: {borders: [9, 1e18], compare: float64}]}]", want: "ids [2 2 0]\n"},
		"a uint64 that becomes null": {contents: larges, text: "sparse: [{columns: [u], ops: [cast: {to: int64, " +
			"overflow: as_null}]}]", want: "ids [9223372036854775807 5] lengths [1 0 1]\n"},
		"a uint64 as an id": {contents: larges, text: "sparse: [{columns: [u], ops: [sigrid_hash: {max: 10}]}]",
			want: "ids [7 1 4]\n"},
		"uint64 as scores": {contents: scores(1 << 62), text: "sparse: [{inputs: [ids, scores], as: s, ops: " +
			"[with_scores]}]", want: "ids [7 8] lengths [2] weights [2 4.611686e+18]\n"},
		"uint64 too large as scores": {contents: scores(math.MaxUint64), text: "sparse: [{inputs: [ids, scores], as: " +
			"s, ops: [with_scores]}]", refused: []string{"scores", noNumber}},
		"uint64 too large to compare": {contents: scores(math.MaxUint64), text: "dense: [{inputs: [ids, ids, " +
			"scores], as: s, ops: [compute_score: {function: get_score_max}]}]", refused: []string{"scores", noNumber}},
		"uint64 too large as scores of a map": {contents: map[string][]byte{"a.parquet": parquetOf(t, []struct {
			M map[int64]map[int64]uint64 `parquet:"m"`
		}{{map[int64]map[int64]uint64{1: {5: math.MaxUint64}}}})}, text: `sparse: [{columns: ["m[1]"]}]`,
			refused: []string{"m.key_value", noNumber}},
		"nulls without a type": {contents: map[string][]byte{"a.parquet": nullsOf(t, "c", 2),
			"b.parquet": parquetOf(t, []words{{[]int64{1}}, {[]int64{2, 3}}})}, text: "sparse: [{columns: [c]}]",
			want: "ids [] lengths [0 0]\nids [1 2 3] lengths [1 2]\n"},
		"two scales": {contents: map[string][]byte{"a.parquet": parquetOf(t, []struct {
			P int32 `parquet:"p,decimal(2:9)"`
		}{{150}}), "b.parquet": parquetOf(t, []struct {
			P int64 `parquet:"p,decimal(3:12)"`
		}{{1500}, {-250}})}, text: "dense: [{columns: [p]}]", want: "dense [1.5]\ndense [1.5 -0.25]\n"},
		"a real that is not an id": {contents: map[string][]byte{"a.parquet": parquetOf(t, []number{{&one}, {&half}})},
			text: "sparse: [{columns: [x]}]", refused: []string{`column "x"`, "row 1", "4.5"}},
		"the top of a range": {contents: map[string][]byte{"a.parquet": parquetOf(t, []number{{&one}})},
			text: "dense: [{columns: [x], ops: [fill_null: 0, min_max: {min: 0, max: 1}, onehot: {classes: 2, " +
				"lower: 0, upper: 1}]}]",
			want: "dense [0 1]\n"},
		"a tail that is dropped": {contents: larges, text: "sparse: [{columns: [u]}]",
			options: dataset.Options{Batch: 2, Tail: dataset.DropTail}, want: "ids [9223372036854775807 " +
				"-9223372036854775808]\n"},
		"a damaged page": {contents: map[string][]byte{"a.parquet": damaged}, text: "sparse: [{columns: [u]}]",
			refused: []string{"u", "page"}},
	} {
		t.Run(name, func(t *testing.T) {
			paths := write(t, c.contents)
			for _, engine := range []Engine{EngineReference, EngineCPU, EngineDrive} {
				m := openManager(t, files(t, paths, DriveOptions{Engine: engine}))
				got, err := everyMiniBatch(t, m, c.text, c.options)
				if c.refused == nil {
					require.NoError(t, err, engine)
					assert.Equal(t, c.want, got, engine)
					continue
				}
				require.Error(t, err, "%v made %s", engine, got)
				for _, part := range c.refused {
					assert.ErrorContains(t, err, part, engine)
				}
			}
		})
	}
}

// everyMiniBatch returns the mini-batches that a pipeline makes of what a manager holds, one a line.
func everyMiniBatch(t *testing.T, m *Manager, text string, o dataset.Options) (string, error) {
	t.Helper()
	spec, err := pipeline.Parse([]byte(text))
	require.NoError(t, err)
	data, err := m.Dataset(t.Context())
	require.NoError(t, err)
	o.Batch = cmp.Or(o.Batch, 10)
	plan, err := dataset.NewPlan(data.Manifest, o)
	require.NoError(t, err)
	j := &api.Job{Digest: dataset.Digest{1}, Pipeline: spec, Plan: plan.Options()}
	if err := m.Prepare(t.Context(), j); err != nil {
		return "", err
	}
	var all strings.Builder
	for split := range plan.All() {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "files", Split: split})
		require.NoError(t, err)
		for {
			mb, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return all.String(), errors.Join(err, s.Close())
			}
			var tensors []string
			if mb.Label != nil {
				tensors = append(tensors, fmt.Sprint("label ", mb.Label))
			}
			if len(mb.Schema.Dense) > 0 {
				tensors = append(tensors, fmt.Sprint("dense ", mb.Dense))
			}
			if len(mb.Schema.Keys) > 0 {
				tensors = append(tensors, fmt.Sprint("ids ", mb.Values64))
			}
			if mb.Lengths != nil {
				tensors = append(tensors, fmt.Sprint("lengths ", mb.Lengths))
			}
			if mb.Weights != nil {
				tensors = append(tensors, fmt.Sprint("weights ", mb.Weights))
			}
			fmt.Fprintln(&all, strings.Join(tensors, " "))
			mb.Release()
		}
		require.NoError(t, s.Close())
	}
	return all.String(), nil
}
