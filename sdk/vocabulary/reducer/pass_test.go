package reducer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/passes/passestest"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

const oneVocabulary = `sparse: [{columns: [id], ops: [vocabulary: v]}]
vocabularies: {v: {}}
`

// newPass returns a pass that keeps a part after every mini-batch.
func newPass(t *testing.T) *Pass {
	t.Helper()
	spec, err := pipeline.Parse([]byte(oneVocabulary))
	require.NoError(t, err)
	dir := t.TempDir()
	return &Pass{Pipeline: spec, Name: "v", Path: filepath.Join(dir, "v"),
		Options: passes.Options{Work: filepath.Join(dir, "work"), Every: time.Nanosecond}}
}

// keepFolder runs a pass and leaves its work folder and the files as they are when the process ends before the folder
// is removed, or with unwritten before the file has its name.
func keepFolder(t *testing.T, p *Pass, source passes.Source, unwritten bool) *Report {
	t.Helper()
	r := &reduction{Pass: p, report: &Report{}}
	require.NoError(t, r.prepare())
	before, _ := os.ReadFile(p.Path) // it may not be there
	var err error
	r.work, err = p.OpenWork("vocabulary", source, &r.made, r.facts)
	require.NoError(t, err)
	require.NoError(t, r.reduce(t.Context(), source))
	require.NoError(t, r.work.Close())
	if unwritten {
		require.NoError(t, os.WriteFile(p.Path, before, 0o600))
	}
	return r.report
}

// TestAPassThatWroteItsFile: the process ends before it has removed the work folder. The same call says what was made,
// and makes nothing again, though the vocabulary that it extends is now the one that it wrote.
func TestAPassThatWroteItsFile(t *testing.T) {
	first := newPass(t)
	_, err := first.Run(t.Context(), &passestest.Source{Partitions: [][]int64{{5, 7, 5}}, Batch: 1})
	require.NoError(t, err)
	more := *first
	more.Extend, more.Replace = first.Path, true
	source := &passestest.Source{Partitions: [][]int64{{9, 7}}, Batch: 1}
	want := keepFolder(t, &more, source, false)
	require.NoError(t, os.Rename(more.Path+vocabulary.CountsSuffix, more.Path+".counts.next")) // it ended before that

	other := more
	other.Path = filepath.Join(t.TempDir(), "other")
	_, err = other.Run(t.Context(), source)
	var otherPass *passes.OtherPassError
	require.ErrorAs(t, err, &otherPass)
	require.ErrorContains(t, err, "another file to write ("+more.Path+", and now "+other.Path+")")

	source.StopAfter = 1 // nothing is taken again
	made, err := more.Run(t.Context(), source)
	require.NoError(t, err)
	assert.Equal(t, want.Built, made.Built)
	assert.EqualValues(t, []vocabulary.BuiltTable{{Keys: 3, Seen: 3, Appended: 1}}, made.Tables)
	assert.EqualValues(t, []int64{2, 2, 0}, []int64{made.Rows, made.Resumed, made.Folded})
	assert.Equal(t, want.Columns, made.Columns)
	assert.Equal(t, want.Rules, made.Rules)
	assert.NoDirExists(t, more.Work)
	v, err := vocabulary.Load(more.Path)
	require.NoError(t, err)
	assert.Equal(t, [][]int64{{5, 7, 9}}, v.Tables)
	_, err = vocabulary.OpenCounts(more.Path, v.Digest)
	require.NoError(t, err)
	assert.FileExists(t, more.Path+vocabulary.CountsSuffix)
}

// TestAPassThatHasNotWrittenItsFile: the process ends when the file is whole and has no name. The same call goes on
// with the vocabulary that it extends.
func TestAPassThatHasNotWrittenItsFile(t *testing.T) {
	first := newPass(t)
	_, err := first.Run(t.Context(), &passestest.Source{Partitions: [][]int64{{5, 7, 5}}, Batch: 1})
	require.NoError(t, err)
	counts, err := os.ReadFile(first.Path + vocabulary.CountsSuffix)
	require.NoError(t, err)
	more := *first
	more.Extend, more.Replace = first.Path, true
	source := &passestest.Source{Partitions: [][]int64{{9, 7, 2}}, Batch: 1}
	want := keepFolder(t, &more, source, true)
	require.NoError(t, os.WriteFile(more.Path+vocabulary.CountsSuffix, counts, 0o600))
	made, err := more.Run(t.Context(), source)
	require.NoError(t, err)
	assert.Equal(t, want.Built, made.Built)
	assert.EqualValues(t, []int64{3, 2, 1}, []int64{made.Rows, made.Resumed, made.Folded})
	v, err := vocabulary.Load(more.Path)
	require.NoError(t, err)
	assert.Equal(t, [][]int64{{5, 7, 9, 2}}, v.Tables)
}

// TestAPartThatHasChanged is an error and no other file.
func TestAPartThatHasChanged(t *testing.T) {
	p := newPass(t)
	source := &passestest.Source{Partitions: [][]int64{{9, 7, 2}}, Batch: 1, StopAfter: 1}
	_, err := p.Run(t.Context(), source)
	require.ErrorIs(t, err, passestest.ErrStopped)
	part := filepath.Join(p.Work, "part-00000001")
	whole, err := os.ReadFile(part)
	require.NoError(t, err)
	whole[len(whole)/2] ^= 1
	require.NoError(t, os.WriteFile(part, whole, 0o600))
	_, err = p.Run(t.Context(), source)
	require.ErrorIs(t, err, passes.ErrWork)
	require.ErrorIs(t, err, vocabulary.ErrDamaged)
	require.NoFileExists(t, p.Path)
}

// TestOptionsThatContradictEachOther are refused before the source is asked.
func TestOptionsThatContradictEachOther(t *testing.T) {
	for _, change := range []func(p *Pass){
		func(p *Pass) { p.Path = "" }, func(p *Pass) { p.InMemory = true }, func(p *Pass) { p.Memory = -1 },
		func(p *Pass) { p.Every = -1 },
	} {
		p := newPass(t)
		change(p)
		_, err := p.Run(t.Context(), nil)
		require.ErrorIs(t, err, passes.ErrOptions)
	}
}
