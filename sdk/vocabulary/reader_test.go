package vocabulary

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// keysApart returns n keys that are no array.
func keysApart(n int, first int64) testColumn {
	column := make(testColumn, n)
	for i := range column {
		column[i] = []int64{first + int64(i)*1_000_003}
	}
	return column
}

// TestLoadForLookups checks that a vocabulary without the keys of its larger tables gives the same ids, whichever
// tables these are.
func TestLoadForLookups(t *testing.T) {
	columns := []testColumn{keysApart(300, 5), keysApart(300, 7), keysApart(300, 11), keysApart(300, 13)}
	for i, n := range []int{300, 0, 20, 100} { // different keys
		for row := range columns[i] {
			if row >= n {
				columns[i][row] = columns[i][0]
			}
			if n == 0 {
				columns[i][row] = nil
			}
		}
	}
	b, err := NewBuilder(columnsNamed(len(columns)), Rules{}, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	addAll(t, b, columns)
	path := filepath.Join(t.TempDir(), "v.vocab")
	whole := finish(t, b, path)
	want, err := apply(t, whole, UnknownFail, true, columns...)
	require.NoError(t, err)
	for most, listed := range map[uint64][]int{ // bytes of 1,024, 64 and 256 slots
		0: {0, 0, 0, 0}, 64*16 - 1: {0, 0, 0, 0}, 64 * 16: {0, 0, 20, 0}, 256 * 16: {0, 0, 20, 100},
		1024*16 - 1: {0, 0, 20, 100}, 1024 * 16: {300, 0, 20, 100},
	} {
		v, err := loadForLookups(path, most)
		require.NoError(t, err)
		assert.Equal(t, whole.Digest, v.Digest)
		assert.EqualValues(t, 420, v.Keys())
		at := 0
		for i, n := range listed {
			assert.Len(t, v.Tables[i], n, "table %d of at most %d bytes", i, most)
			if n > 0 {
				assert.Equal(t, whole.Tables[i], v.Tables[i])
			}
			at += n
		}
		assert.Equal(t, whole.MemoryBytes()-8*int64(420-at), v.MemoryBytes())
		got, err := apply(t, v, UnknownFail, true, columns...)
		require.NoError(t, err)
		assert.Empty(t, tensor.Diff(want, got))
		_, err = apply(t, v, UnknownFail, true, keysApart(1, 6), columns[1][:1], columns[2][:1], columns[3][:1])
		var unknown *UnknownError
		require.ErrorAs(t, err, &unknown)
	}
}

// TestLoadForLookupsOfDamagedFiles cuts and changes a file at every byte.
func TestLoadForLookupsOfDamagedFiles(t *testing.T) {
	good, _ := exampleFiles(t)
	path := filepath.Join(t.TempDir(), "v.vocab")
	load := func(b []byte) (*Vocabulary, error) {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return LoadForLookups(path)
	}
	v, err := load(good)
	require.NoError(t, err)
	whole, err := decodeVocabulary(good)
	require.NoError(t, err)
	assert.Equal(t, whole.Keys(), v.Keys())
	for i := range good {
		_, err := load(good[:i])
		require.ErrorIs(t, err, ErrDamaged)
		changed := append([]byte{}, good...)
		changed[i] ^= 1
		_, err = load(changed)
		require.Error(t, err)
	}
	tables := len(good) - 4 - 16 - 4*8
	twice := append([]byte{}, good...)
	copy(twice[tables+8:], twice[tables:tables+8])
	_, err = load(resum(twice))
	require.ErrorIs(t, err, ErrDamaged)
	_, err = LoadForLookups(path + "none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAFileThatChangesWhileItIsRead gives the reader of tables more and fewer keys than the file said that it has.
func TestAFileThatChangesWhileItIsRead(t *testing.T) {
	reader := func() *tableReader { return &tableReader{v: &Vocabulary{sizes: []int64{0, 2, 0, 1, 0}}} }
	key := func(n byte) []byte { return []byte{n, 0, 0, 0, 0, 0, 0, 0} }
	r := reader()
	r.addRawKeys(append(key(1), key(2)...))
	r.addRawKeys(key(3))
	require.NoError(t, r.endTables())
	require.Len(t, r.v.prepared, 5)
	r = reader()
	r.addRawKeys(append(key(1), key(2)...))
	require.ErrorContains(t, r.endTables(), "shrank")
	r = reader()
	for i := range byte(4) {
		r.addRawKeys(key(i))
	}
	require.ErrorContains(t, r.endTables(), "grew")
	r = reader()
	r.addRawKeys(append(key(1), key(1)...))
	require.ErrorIs(t, r.endTables(), ErrDamaged)
}
