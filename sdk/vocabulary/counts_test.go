package vocabulary

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buildFile writes the vocabulary of a column of ids to a path.
func buildFile(t *testing.T, path string, ids ...int64) (*Built, error) {
	t.Helper()
	b, err := NewBuilder(columnsNamed(1), Rules{}, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	addAll(t, b, []testColumn{scalars(ids...)})
	return b.Finish(path)
}

// requireCounts requires that the vocabulary at a path has its own sidecar, which knows some keys.
func requireCounts(t *testing.T, path string, keys int64) {
	t.Helper()
	v, err := Load(path)
	require.NoError(t, err)
	counts, err := OpenCounts(path, v.Digest)
	require.NoError(t, err)
	assert.Equal(t, v.Digest, counts.Vocabulary)
	assert.Equal(t, keys, counts.Keys(0))
}

// block makes a folder at a path, over which no file is renamed.
func block(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
}

// TestAVocabularyThatIsReplacedHasItsCounts ends Finish before each of its renames. The vocabulary that is there then,
// the old one or the new one, has its own sidecar, and the next Finish goes on from there.
func TestAVocabularyThatIsReplacedHasItsCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.vocab")
	_, err := buildFile(t, path, 1, 2)
	require.NoError(t, err)
	requireCounts(t, path, 2)

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	block(t, path)
	_, err = buildFile(t, path, 1, 2, 3)
	require.Error(t, err)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	requireCounts(t, path, 2)

	old, err := os.ReadFile(path + CountsSuffix)
	require.NoError(t, err)
	block(t, path+CountsSuffix)
	_, err = buildFile(t, path, 1, 2, 3)
	require.Error(t, err)
	requireCounts(t, path, 3)
	require.NoError(t, os.RemoveAll(path+CountsSuffix))
	requireCounts(t, path, 3)
	require.NoError(t, os.WriteFile(path+CountsSuffix, old, 0o600))
	requireCounts(t, path, 3)

	// The next Finish gives the sidecar its name before it writes another one.
	require.NoError(t, CompleteCounts(path))
	require.NoError(t, os.WriteFile(path+nextCountsSuffix, old, 0o600))
	requireCounts(t, path, 3)
	require.NoError(t, os.Rename(path+CountsSuffix, path+nextCountsSuffix))
	_, err = buildFile(t, path, 1, 2, 3, 4)
	require.NoError(t, err)
	requireCounts(t, path, 4)
	assert.NoFileExists(t, path+nextCountsSuffix)
}

func TestCountsOfAnotherVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.vocab")
	built, err := buildFile(t, path, 1, 2)
	require.NoError(t, err)
	counts, err := OpenCounts(path, Digest{1})
	require.NoError(t, err)
	assert.Equal(t, built.Digest, counts.Vocabulary, "the caller compares")
	require.NoError(t, os.Remove(path+CountsSuffix))
	_, err = OpenCounts(path, built.Digest)
	assert.ErrorIs(t, err, os.ErrNotExist)
}
