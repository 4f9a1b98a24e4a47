package selections_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/selections"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

var filter = dataset.Digest{9}

// partition returns a partition of 9,000 rows.
func partition(i int) dataset.Partition {
	return dataset.Partition{Name: fmt.Sprintf("part-%d", i), Bytes: 5, Rows: 9000, RowGroups: []int64{9000},
		Content: dataset.Digest{byte(i)}}
}

// part makes the part of a partition: every second row passes.
func part(t *testing.T, p dataset.Partition) *selection.Selection {
	t.Helper()
	m, err := selection.PartManifest(p)
	require.NoError(t, err)
	b, err := selection.NewBuilder(m, filter)
	require.NoError(t, err)
	passes := make([]bool, p.Rows)
	for i := range passes {
		passes[i] = i%2 == 0
	}
	require.NoError(t, b.Add(0, 0, passes))
	s, err := b.Finish()
	require.NoError(t, err)
	return s
}

func open(t *testing.T, folder string, most int64) *selections.Store {
	t.Helper()
	s, err := selections.Open(folder, most, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return s
}

func has(t *testing.T, s *selections.Store, p dataset.Partition, filter dataset.Digest) bool {
	t.Helper()
	here, err := s.Has(p, filter)
	require.NoError(t, err)
	return here
}

// TestStore: a part is found by its partition and filter, also after a restart, and read in pieces.
func TestStore(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, 1<<20)
	p := partition(1)
	assert.False(t, has(t, s, p, filter))
	_, _, err := s.ReadAt(p, filter, 0)
	require.ErrorIs(t, err, selections.ErrMissing)
	made := part(t, p)
	require.NoError(t, s.Put(made))
	for _, s := range []*selections.Store{s, open(t, folder, 1<<20)} {
		assert.True(t, has(t, s, p, filter))
		assert.False(t, has(t, s, p, dataset.Digest{1}), "another filter")
		other := p
		other.Content[3]++
		assert.False(t, has(t, s, other, filter), "another file of the name")
		var got []byte
		for {
			piece, total, err := s.ReadAt(p, filter, int64(len(got)))
			require.NoError(t, err)
			got = append(got, piece...)
			if int64(len(got)) == total {
				break
			}
		}
		assert.True(t, bytes.Equal(made.Encode(), got))
		_, _, err = s.ReadAt(p, filter, int64(len(got))+1)
		require.ErrorContains(t, err, "of a part of")
		_, _, err = s.ReadAt(p, filter, -1)
		require.ErrorContains(t, err, "byte -1")
	}
}

// TestDamagedParts: a part that changed on the disk, or that lies under the name of another one, counts as none.
func TestDamagedParts(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, 1<<20)
	require.NoError(t, s.Put(part(t, partition(1))))
	files, err := filepath.Glob(filepath.Join(folder, "*.selection"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	b, err := os.ReadFile(files[0])
	require.NoError(t, err)
	b[len(b)-9] ^= 1
	require.NoError(t, os.WriteFile(files[0], b, 0o600))
	s = open(t, folder, 1<<20)
	assert.False(t, has(t, s, partition(1), filter))
	assert.NoFileExists(t, files[0])

	require.NoError(t, os.WriteFile(files[0], part(t, partition(2)).Encode(), 0o600))
	assert.False(t, has(t, open(t, folder, 1<<20), partition(1), filter))
}

// TestAPartThatIsCut while the store is open is not read as zeros, and counts as none.
func TestAPartThatIsCut(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder, 1<<20)
	require.NoError(t, s.Put(part(t, partition(1))))
	files, err := filepath.Glob(filepath.Join(folder, "*.selection"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(files[0], 50))
	_, _, err = s.ReadAt(partition(1), filter, 0)
	require.ErrorIs(t, err, selections.ErrMissing)
	assert.False(t, has(t, s, partition(1), filter), "it is to be made again")
	require.NoError(t, s.Put(part(t, partition(1))))
	assert.True(t, has(t, s, partition(1), filter))
}

// TestRoom: the part that was used longest ago makes room, and the newest one stays even if it is too large alone.
func TestRoom(t *testing.T) {
	size := int64(len(part(t, partition(0)).Encode()))
	s := open(t, t.TempDir(), 2*size)
	require.NoError(t, s.Put(part(t, partition(1))))
	require.NoError(t, s.Put(part(t, partition(2))))
	assert.True(t, has(t, s, partition(1), filter))
	_, _, err := s.ReadAt(partition(1), filter, 0) // part 2 is the one that was used longest ago now
	require.NoError(t, err)
	require.NoError(t, s.Put(part(t, partition(3))))
	assert.True(t, has(t, s, partition(1), filter))
	assert.False(t, has(t, s, partition(2), filter))
	assert.True(t, has(t, s, partition(3), filter))

	s = open(t, t.TempDir(), 1)
	require.NoError(t, s.Put(part(t, partition(1))))
	assert.True(t, has(t, s, partition(1), filter))
}
