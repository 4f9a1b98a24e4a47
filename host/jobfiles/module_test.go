package jobfiles

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// moduleOf makes a module with a function that yields a number.
func moduleOf(yields int64) (File, []byte) {
	raw := wasmtest.Module{Functions: []wasmtest.Function{{Name: "f", Params: []byte{wasmtest.I64},
		Results: []byte{wasmtest.I64}, Code: wasmtest.ConstI64(yields)}}}.Bytes()
	return fileOf(raw), raw
}

// fileOf names bytes as a module.
func fileOf(raw []byte) File {
	return File{Digest: sha256.Sum256(raw), Bytes: int64(len(raw)), Kind: Module}
}

// TestModules: a module is fetched by its digest, counted while it is in memory, and fetched again if its file changed
// on the disk.
func TestModules(t *testing.T) {
	want, raw := moduleOf(7)
	folder := t.TempDir()
	c := NewCache(CacheOptions{Store: openStore(t, Options{Folder: folder}), Memory: want.Bytes, Sources: from(raw)})
	defer c.Close()
	got, release, err := c.AcquireModule(t.Context(), want)
	require.NoError(t, err)
	assert.Equal(t, raw, got)
	assert.Equal(t, want.Bytes, c.Counts().MemoryBytes)
	_, _, err = c.AcquireModule(t.Context(), want)
	require.ErrorIs(t, err, ErrRoom, "there is memory for one")
	release()
	release()
	assert.Zero(t, c.Counts().MemoryBytes)

	path := filepath.Join(folder, want.Digest.String())
	for _, changed := range [][]byte{append(bytes.Clone(raw[:len(raw)-1]), raw[len(raw)-1]^1), raw[:9], nil,
		append(bytes.Clone(raw), 0)} {
		require.NoError(t, os.WriteFile(path, changed, 0o600))
		got, release, err = c.AcquireModule(t.Context(), want)
		require.NoError(t, err)
		assert.Equal(t, raw, got)
		release()
	}
	require.NoError(t, os.Remove(path))
	_, err = c.o.Store.LoadModule(want)
	require.ErrorIs(t, err, ErrMissing)
	_, release, err = c.AcquireModule(t.Context(), want)
	require.NoError(t, err)
	release()
}

// TestForeignModules: bytes that are not the digest's or are no module are refused, and nothing is kept of them.
func TestForeignModules(t *testing.T) {
	want, raw := moduleOf(1)
	_, other := moduleOf(2)
	text := []byte("this is no module")
	vocabularyFile, words := vocabularyOf(t, 50)
	vocabularyFile.Kind = Module
	imports := wasmtest.Module{Sections: []byte{2, 7, 1, 1, 'a', 1, 'b', 0, 0}}.Bytes()
	for name, c := range map[string]struct {
		want File
		sent []byte
		err  error
	}{
		"another module": {File{Digest: want.Digest, Bytes: int64(len(other)), Kind: Module}, other, ErrDigest},
		"a text":         {fileOf(text), text, ErrRequest},
		"imports":        {fileOf(imports), imports, format.ErrModule},
		"a vocabulary":   {vocabularyFile, words, ErrRequest},
		"nothing":        {want, nil, ErrMissing},
		"another length": {File{Digest: want.Digest, Bytes: want.Bytes + 1, Kind: Module}, raw, ErrDigest},
	} {
		store := openStore(t, Options{})
		cache := NewCache(CacheOptions{Store: store, Memory: 1 << 30, Sources: from(c.sent)})
		_, _, err := cache.AcquireModule(t.Context(), c.want)
		require.ErrorIs(t, err, c.err, name)
		assert.ErrorContains(t, err, c.want.Digest.String(), name)
		assert.Empty(t, store.Files(), name)
		assert.Zero(t, cache.Counts().MemoryBytes, name)
		cache.Close()
	}
}

// TestSizesOfModules checks the bounds of a module from both sides.
func TestSizesOfModules(t *testing.T) {
	empty := wasmtest.Module{}.Bytes()[:8]
	require.Equal(t, leastModule, len(empty))
	largest := append(bytes.Clone(empty), 0) // a section of any content
	largest = wasmtest.Unsigned(largest, format.MaxModule-8-1-3)
	largest = append(largest, 3, 'a', 'b', 'c')
	largest = append(largest, make([]byte, format.MaxModule-len(largest))...)
	for _, raw := range [][]byte{empty, largest} {
		s := openStore(t, Options{})
		require.NoError(t, put(s, "ann", fileOf(raw), raw, MaxPiece))
		got, err := s.LoadModule(fileOf(raw))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(raw, got))
	}
	for _, raw := range [][]byte{empty[:7], append(largest, 0)} {
		err := put(openStore(t, Options{}), "ann", fileOf(raw), raw, MaxPiece)
		require.ErrorIs(t, err, ErrRequest)
		require.ErrorContains(t, err, "want 8 to 1048576")
	}
}

// TestAFileOfAnotherKind: whoever names a file as one of another kind gets an error, and the file stays.
func TestAFileOfAnotherKind(t *testing.T) {
	module, raw := moduleOf(1)
	selected, rows := selectionOf(t, 9000)
	words, keys := vocabularyOf(t, 50)
	s := openStore(t, Options{})
	for _, f := range []struct {
		file File
		raw  []byte
	}{{module, raw}, {selected, rows}, {words, keys}} {
		require.NoError(t, put(s, "ann", f.file, f.raw, MaxPiece))
	}
	c := NewCache(CacheOptions{Store: s, Memory: 1 << 30, Sources: from(nil)})
	defer c.Close()
	for _, f := range []File{module, selected} {
		_, err := s.Describe(f.Digest)
		require.ErrorIs(t, err, ErrRequest)
		_, _, err = c.Acquire(t.Context(), File{Digest: f.Digest, Bytes: max(f.Bytes, leastBytes)})
		require.ErrorIs(t, err, ErrRequest)
	}
	_, _, err := c.AcquireSelection(t.Context(), words)
	require.ErrorIs(t, err, ErrRequest)
	assert.Len(t, s.Files(), 3)
}

// TestFilesOfAnOwner: an owner may put so many files that no job names, held ones not counted.
func TestFilesOfAnOwner(t *testing.T) {
	s := openStore(t, Options{OwnerFiles: 2})
	var release func()
	for i := range int64(3) {
		want, raw := moduleOf(i)
		require.NoError(t, put(s, "ann", want, raw, len(raw)), i)
		if i == 0 {
			var ok bool
			release, ok = s.Hold(want.Digest)
			require.True(t, ok)
		}
	}
	want, raw := moduleOf(3)
	require.ErrorIs(t, put(s, "ann", want, raw, len(raw)), ErrRoom)
	require.NoError(t, put(s, "bob", want, raw, len(raw)))
	release()
}

// TestModulesOfAJob checks the limits of what a job names from both sides.
func TestModulesOfAJob(t *testing.T) {
	named := func(n int, bytes int64) (list []*apiv1.JobModule) {
		for i := range n {
			list = append(list, &apiv1.JobModule{Name: "m" + strconv.Itoa(i), Sha256: make([]byte, 32), Bytes: bytes})
		}
		return list
	}
	assert.Equal(t, image.MaxModules, maxModules)
	assert.Equal(t, image.MaxModulesBytes, maxModulesBytes)
	for _, list := range [][]*apiv1.JobModule{nil, named(image.MaxModules, 8), named(4, format.MaxModule)} {
		modules, err := ReadModules(list)
		require.NoError(t, err)
		assert.Len(t, modules, len(list))
	}
	twice := append(named(1, 8), named(1, 8)...)
	short := named(2, 8)
	short[1].Sha256 = make([]byte, 31)
	for says, list := range map[string][]*apiv1.JobModule{
		"17 modules of a job, at most 16":             named(image.MaxModules+1, 8),
		"more than 4194304 bytes of modules of a job": append(named(4, format.MaxModule), named(5, 8)[4]),
		"of 7 bytes: want 8 to 1048576":               named(1, 7),
		"of 1048577 bytes: want 8 to 1048576":         named(1, format.MaxModule+1),
		`module "m0" is named twice`:                  twice,
		`module "m1": a digest of 31 bytes, want 32`:  short,
		"a digest of 0 bytes":                         {nil},
	} {
		_, err := ReadModules(list)
		require.ErrorIs(t, err, ErrRequest, says)
		require.ErrorContains(t, err, says)
	}
	modules, err := ReadModules(named(1, 9))
	require.NoError(t, err)
	assert.Equal(t, []NamedModule{{"m0", File{Digest: vocabulary.Digest{}, Bytes: 9, Kind: Module}}}, modules)
}
