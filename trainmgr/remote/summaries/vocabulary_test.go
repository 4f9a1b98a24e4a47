package summaries

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

const oneVocabulary = `name: one
batch: 8
label: {column: label}
sparse:
  - {columns: [cat_0], ops: [positive_modulus: 700, vocabulary: v]}
vocabularies: {v: {}}
`

// beginPass returns a pass that has taken a mini-batch of some keys, and is about to write its file.
func beginPass(t *testing.T, pass *Vocabulary, keys []int64) *reduction {
	t.Helper()
	r := &reduction{pass: pass}
	require.NoError(t, r.prepare())
	var err error
	r.folder, err = openFolder(pass.Work, r.describe())
	require.NoError(t, err)
	d := &r.folder.description
	d.job = dataset.Digest{1, 2}
	d.Job, d.MiniBatches, d.Rows = hex.EncodeToString(d.job[:]), 1, int64(len(keys))
	d.Columns = []describedColumn{{Name: "cat_0", Chain: hex.EncodeToString(make([]byte, 32))}}
	require.NoError(t, d.readDigests())
	require.NoError(t, r.folder.writeDescription())
	token, err := r.folder.token([]dataset.Range{{To: 1}})
	require.NoError(t, err)
	b, err := vocabulary.NewBuilder(d.columns, r.rules, vocabulary.BuilderOptions{Folder: r.folder.temporary()})
	require.NoError(t, err)
	require.NoError(t, b.Add(0, 0, keys, nil))
	_, err = b.WritePartial(filepath.Join(pass.Work, partName(1, 1)), token)
	require.NoError(t, errors.Join(err, b.Close()))
	require.NoError(t, r.folder.readParts())
	return r
}

// finish writes the file and removes the work folder.
func finish(t *testing.T, r *reduction) {
	t.Helper()
	require.NoError(t, r.write())
	require.NoError(t, r.folder.remove())
}

// TestAPassThatWroteItsFile: the process ends before it has removed the work folder. The same call says what was made,
// and makes nothing again, though the vocabulary that it extends is now the one that it wrote.
func TestAPassThatWroteItsFile(t *testing.T) {
	spec, err := pipeline.Parse([]byte(oneVocabulary))
	require.NoError(t, err)
	dir := t.TempDir()
	first := &Vocabulary{Pipeline: spec, Name: "v", Path: filepath.Join(dir, "v"), Work: filepath.Join(dir, "work")}
	finish(t, beginPass(t, first, []int64{5, 7, 5}))

	more := *first
	more.Extend, more.Replace = first.Path, true
	r := beginPass(t, &more, []int64{9, 7})
	require.NoError(t, r.write())
	want := r.report
	require.NoError(t, os.Rename(more.Path+vocabulary.CountsSuffix, more.Path+".counts.next")) // it ended before that
	require.NoError(t, r.folder.close())

	other := more
	other.Path = filepath.Join(dir, "other")
	_, err = other.Run(t.Context(), nil)
	var otherPass *OtherPassError
	require.ErrorAs(t, err, &otherPass)
	require.ErrorContains(t, err, "another file to write ("+more.Path+", and now "+other.Path+")")

	made, err := more.Run(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, want.Built, made.Built)
	assert.EqualValues(t, []vocabulary.BuiltTable{{Keys: 3, Seen: 3, Appended: 1}}, made.Tables)
	assert.EqualValues(t, 2, made.Rows)
	assert.EqualValues(t, 2, made.Resumed)
	assert.Len(t, made.Columns, 1)
	assert.NoDirExists(t, more.Work)
	v, err := vocabulary.Load(more.Path)
	require.NoError(t, err)
	assert.Equal(t, [][]int64{{5, 7, 9}}, v.Tables)
	counts, err := vocabulary.OpenCounts(more.Path, v.Digest)
	require.NoError(t, err)
	require.NoError(t, counts.Close())
	assert.FileExists(t, more.Path+vocabulary.CountsSuffix)
}

// TestAPassThatHasNotWrittenItsFile: the process ends when the file is whole and has no name. The same call goes on
// with the vocabulary that it extends.
func TestAPassThatHasNotWrittenItsFile(t *testing.T) {
	spec, err := pipeline.Parse([]byte(oneVocabulary))
	require.NoError(t, err)
	dir := t.TempDir()
	first := &Vocabulary{Pipeline: spec, Name: "v", Path: filepath.Join(dir, "v"), Work: filepath.Join(dir, "work")}
	finish(t, beginPass(t, first, []int64{5, 7, 5}))
	before, err := os.ReadFile(first.Path)
	require.NoError(t, err)

	more := *first
	more.Extend, more.Replace = first.Path, true
	r := beginPass(t, &more, []int64{9, 7})
	require.NoError(t, r.write())
	require.NoError(t, os.WriteFile(first.Path, before, 0o600))
	require.NoError(t, r.folder.close())

	r = &reduction{pass: &more}
	require.NoError(t, r.prepare())
	r.folder, err = openFolder(more.Work, r.describe())
	require.NoError(t, err)
	written, err := r.isWritten()
	require.NoError(t, err)
	assert.False(t, written)
	whole, err := r.whole()
	require.NoError(t, err)
	assert.True(t, whole)
	require.NoError(t, r.folder.close())
}
