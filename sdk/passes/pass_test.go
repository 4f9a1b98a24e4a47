package passes_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/passes/passestest"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// sum is a reducer whose parts are sums.
type sum struct {
	value, kept int64
	replaces    bool
	fails       error
}

func (s *sum) Add(_ dataset.Fragment, mb *tensor.MiniBatch) error {
	for _, id := range mb.Values64 {
		s.value += id
	}
	return nil
}

func (s *sum) Restore(parts []string, _ []dataset.Range) error {
	for _, path := range parts {
		kept, err := readSum(path)
		if err != nil {
			return err
		}
		if s.kept += kept; s.replaces {
			s.value += kept
		}
	}
	return nil
}

func (s *sum) Keep(path string) (bool, error) {
	if s.fails != nil {
		return false, s.fails
	}
	b, err := json.Marshal(s.value)
	if err != nil {
		return false, err
	}
	replaces := s.replaces && s.kept != 0
	if s.kept += s.value; !s.replaces {
		s.value = 0
	}
	return replaces, os.WriteFile(path, b, 0o600)
}

func (s *sum) Full() bool { return false }

func readSum(path string) (value int64, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &value)
	}
	return value, err
}

// mergedSum is a sum whose parts are merged.
type mergedSum struct{ sum }

func (s *mergedSum) Merge(path string, parts []string) error {
	whole := int64(0)
	for _, part := range parts {
		value, err := readSum(part)
		if err != nil {
			return err
		}
		whole += value
	}
	b, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// values returns partitions of values, and their sum.
func values(rows ...int) (partitions [][]int64, total int64) {
	next := int64(1)
	for _, n := range rows {
		var list []int64
		for range n {
			list = append(list, next)
			total, next = total+next, next+3
		}
		partitions = append(partitions, list)
	}
	return partitions, total
}

// runPass makes a pass with a reducer, or goes on with it.
func runPass(t *testing.T, source passes.Source, o passes.Options, r passes.Reducer) (*passes.Report, error) {
	t.Helper()
	data, err := source.Describe(t.Context())
	require.NoError(t, err)
	work, err := o.OpenWork("sum", source, nil, func() []passes.Fact { return []passes.Fact{passes.List("choice", nil)} })
	if err != nil {
		return nil, err
	}
	spec, err := pipeline.Parse([]byte("sparse: [{columns: [id]}]\n"))
	require.NoError(t, err)
	pass := passes.Pass{Data: data, Pipeline: spec, Options: o,
		Begin: func(context.Context, passes.Run) (passes.Reducer, error) { return r, nil }}
	made, err := pass.Run(t.Context(), source, work)
	if err != nil {
		require.NoError(t, work.Close())
		return nil, err
	}
	return made, errors.Join(work.Remove(), work.Close())
}

// TestSourcesCutAsPassesNeed has sources that cut the data for a job, and not for a pass: no mini-batch is folded in,
// and the work folder names no job.
func TestSourcesCutAsPassesNeed(t *testing.T) {
	partitions, total := values(7, 8)
	for name, cut := range map[string]func(*dataset.Options){
		"boundary none":  func(o *dataset.Options) { o.Boundary = dataset.BoundaryNone },
		"tail drop":      func(o *dataset.Options) { o.Tail = dataset.DropTail },
		"shuffle splits": func(o *dataset.Options) { o.Shuffle = dataset.ShuffleSplits },
		"shuffle rows":   func(o *dataset.Options) { o.Shuffle, o.Window = dataset.ShuffleRows, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			var r sum
			o := passes.Options{Work: filepath.Join(t.TempDir(), "work")}
			source := &passestest.Source{Partitions: partitions, Batch: 5, Cut: cut}
			_, err := runPass(t, source, o, &r)
			require.ErrorIs(t, err, passes.ErrOptions)
			require.ErrorContains(t, err, name)
			require.Zero(t, r.value)
			source.Cut = nil
			_, err = runPass(t, source, o, &r)
			require.NoError(t, err)
			require.Equal(t, total, r.value)
		})
	}
}

// TestAPassThatIsStoppedAnywhere: a pass that is stopped again and again makes what one makes that never stopped.
// Parts are replaced, merged or neither.
func TestAPassThatIsStoppedAnywhere(t *testing.T) {
	partitions, total := values(80, 0, 1, 120)
	for _, stop := range []int{1, 7, 40} {
		for form := range 3 {
			source := &passestest.Source{Partitions: partitions, Batch: 5, StopAfter: stop}
			o := passes.Options{Work: filepath.Join(t.TempDir(), "work"), Every: time.Nanosecond}
			var started, taken, progress int64
			o.Started = func(rows, resumed int64) { started, taken, progress = rows, resumed, 0 }
			last := passes.Progress{}
			o.Progress = func(p passes.Progress) { progress, last = progress+p.Rows, p }
			calls := 0
			for {
				made := &mergedSum{sum{replaces: form == 1}}
				var r passes.Reducer = made
				if form > 0 {
					r = &made.sum
				}
				report, err := runPass(t, source, o, r)
				if calls++; errors.Is(err, passestest.ErrStopped) {
					list, globErr := filepath.Glob(filepath.Join(o.Work, "part-*"))
					require.NoError(t, globErr)
					if form == 0 {
						require.Less(t, len(list), 2*16)
					}
					continue
				}
				require.NoError(t, err)
				if form != 1 {
					made.value += made.kept
				}
				require.Equal(t, total, made.value, "form %d, stopped after %d", form, stop)
				assert.EqualValues(t, 201, report.Resumed+report.Folded)
				assert.Equal(t, []int64{201, report.Resumed, report.Folded}, []int64{started, taken, progress})
				assert.Equal(t, last.AllSplits, last.Splits)
				break
			}
			assert.Equal(t, (41+stop-1)/stop, calls)
			assert.NoDirExists(t, o.Work)
		}
	}
}

// TestAKillLeavesNoHalves: files that pass.json does not name are removed, and their mini-batches are taken again.
func TestAKillLeavesNoHalves(t *testing.T) {
	partitions, total := values(100)
	source := &passestest.Source{Partitions: partitions, Batch: 5, StopAfter: 4}
	o := passes.Options{Work: filepath.Join(t.TempDir(), "work"), Every: time.Nanosecond}
	_, err := runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passestest.ErrStopped)
	before, err := os.ReadFile(filepath.Join(o.Work, "pass.json"))
	require.NoError(t, err)
	_, err = runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passestest.ErrStopped)
	require.NoError(t, os.WriteFile(filepath.Join(o.Work, "pass.json"), before, 0o600)) // it ended before that
	for _, name := range []string{"part-00000099.1.partial", "pass.json.1.partial"} {
		require.NoError(t, os.WriteFile(filepath.Join(o.Work, name), nil, 0o600))
	}
	r := &sum{}
	source.StopAfter = 0
	report, err := runPass(t, source, o, r)
	require.NoError(t, err)
	assert.EqualValues(t, 4*5, report.Resumed)
	assert.Equal(t, total, r.value+r.kept)
	assert.NoDirExists(t, o.Work)
}

// TestWithoutAWorkFolder: a reducer that keeps nothing is enough.
func TestWithoutAWorkFolder(t *testing.T) {
	partitions, total := values(20, 7)
	r := &sum{}
	report, err := runPass(t, &passestest.Source{Partitions: partitions, Batch: 6}, passes.Options{}, r)
	require.NoError(t, err)
	assert.Equal(t, total, r.value)
	assert.EqualValues(t, 27, report.Folded)
	assert.Equal(t, 6, report.MiniBatches)
	_, err = runPass(t, &passestest.Source{}, passes.Options{Disk: -1}, r)
	require.ErrorIs(t, err, passes.ErrOptions)
}

// TestFoldersThatAreRefused: of another pass or other data, damaged, in use, or not a work folder at all. Bounds and
// failing writes leave what was taken.
func TestFoldersThatAreRefused(t *testing.T) {
	partitions, total := values(100)
	source := &passestest.Source{Partitions: partitions, Batch: 5, StopAfter: 5}
	o := passes.Options{Work: filepath.Join(t.TempDir(), "work"), Every: time.Nanosecond}
	_, err := runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passestest.ErrStopped)

	var refused *passes.OtherPassError
	_, err = o.OpenWork("product", source, nil, func() []passes.Fact { return nil })
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "another kind (sum, and now product)")
	work, err := o.OpenWork("sum", source, nil, func() []passes.Fact { return nil })
	require.NoError(t, err)
	_, err = runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passes.ErrInUse)
	require.NoError(t, work.Close())

	other := &passestest.Source{Partitions: partitions[:1:1], Batch: 10}
	_, err = runPass(t, other, o, &sum{})
	require.ErrorIs(t, err, dataset.ErrOtherJob)
	assert.ErrorContains(t, err, o.Work)

	bounded := o
	bounded.Disk = 8
	var room *passes.RoomError
	_, err = runPass(t, source, bounded, &sum{})
	require.ErrorAs(t, err, &room)
	assert.True(t, room.Bound)
	_, err = runPass(t, source, o, &sum{fails: errors.New("broken")})
	require.ErrorContains(t, err, "broken")

	list, err := filepath.Glob(filepath.Join(o.Work, "part-*"))
	require.NoError(t, err)
	good, err := os.ReadFile(list[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list[0], []byte("{"), 0o600))
	_, err = runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passes.ErrWork)
	require.NoError(t, os.Remove(list[0]))
	_, err = runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passes.ErrWork)
	require.NoError(t, os.WriteFile(list[0], good, 0o600))
	source.StopAfter = 0
	r := &sum{}
	_, err = runPass(t, source, o, r)
	require.NoError(t, err)
	assert.Equal(t, total, r.value+r.kept)

	require.NoError(t, os.MkdirAll(o.Work, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(o.Work, "thesis.txt"), nil, 0o600))
	_, err = runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passes.ErrWork)
	assert.FileExists(t, filepath.Join(o.Work, "thesis.txt"))
}

// TestPartsThatNoPassWrote edits pass.json: what a pass may have written is taken up, and what none writes is refused
// before a file is touched.
func TestPartsThatNoPassWrote(t *testing.T) {
	partitions, total := values(100)
	source := &passestest.Source{Partitions: partitions, Batch: 5, StopAfter: 5}
	o := passes.Options{Work: filepath.Join(t.TempDir(), "work"), Every: time.Nanosecond}
	_, err := runPass(t, source, o, &sum{})
	require.ErrorIs(t, err, passestest.ErrStopped)
	file := filepath.Join(o.Work, "pass.json")
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	type object = map[string]any
	read := func() (d object, parts []any) {
		require.NoError(t, json.Unmarshal(good, &d))
		parts = d["parts"].([]any)
		require.GreaterOrEqual(t, len(parts), 2)
		return d, parts
	}
	named := func(name string) func(object, []any) {
		return func(_ object, parts []any) { parts[0].(object)["name"] = name }
	}
	for name, c := range map[string]struct {
		edit    func(d object, parts []any)
		refusal string // empty: the folder is taken
	}{
		"as written":       {func(object, []any) {}, ""},
		"more was written": {func(d object, _ []any) { d["parts_written"] = 1000 }, ""},
		"above the folder": {named("../part-00000001"), `names the part "../part-00000001"`},
		"in a folder":      {named("part-00000001/x"), `names the part "part-00000001/x"`},
		"absolute":         {named("/part-00000001"), "names the part"},
		"no name":          {named(""), "names the part"},
		"a sign":           {named("part-+0000001"), "names the part"},
		"part 0":           {named("part-00000000"), "behind part 0"},
		"fewer digits":     {named("part-1"), "names the part"},
		"no token":         {func(d object, _ []any) { delete(d, "token") }, "lacks the token"},
		"twice":            {func(_ object, parts []any) { parts[1] = parts[0] }, "behind part"},
		"fewer written":    {func(d object, _ []any) { d["parts_written"] = 1 }, "its parts_written is 1"},
		"bytes below 0":    {func(_ object, parts []any) { parts[0].(object)["bytes"] = -1 }, "-1 bytes"},
		"merges below 0":   {func(_ object, parts []any) { parts[0].(object)["merged"] = -1 }, "merged -1 times"},
	} {
		d, parts := read()
		c.edit(d, parts)
		b, err := json.Marshal(d)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, b, 0o600))
		work, err := o.OpenWork("sum", source, nil, func() []passes.Fact { return nil })
		if c.refusal == "" {
			require.NoError(t, err, name)
			require.NoError(t, work.Close())
			continue
		}
		require.ErrorIs(t, err, passes.ErrWork, name)
		require.ErrorContains(t, err, c.refusal, name)
		require.ErrorContains(t, err, "remove it to begin again", name)
	}
	require.NoError(t, os.WriteFile(file, good, 0o600))
	source.StopAfter = 0
	r := &sum{}
	_, err = runPass(t, source, o, r)
	require.NoError(t, err)
	assert.Equal(t, total, r.value+r.kept, "the refusals left all parts")
}

// TestAFolderHasOneProcess opens a folder and removes it at once, several times in parallel: there is one user at a
// time, and a folder that another uses already is not removed.
func TestAFolderHasOneProcess(t *testing.T) {
	o := passes.Options{Work: filepath.Join(t.TempDir(), "work")}
	var users, opened atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				w, err := o.OpenWork("sum", &passestest.Source{}, nil, func() []passes.Fact { return nil })
				if err != nil {
					assert.True(t, errors.Is(err, passes.ErrInUse) || errors.Is(err, fs.ErrNotExist), "%v", err)
					continue
				}
				assert.EqualValues(t, 1, users.Add(1))
				assert.FileExists(t, filepath.Join(o.Work, "lock"))
				opened.Add(1)
				users.Add(-1)
				assert.NoError(t, errors.Join(w.Remove(), w.Close()))
			}
		})
	}
	wg.Wait()
	assert.Positive(t, opened.Load())
}
