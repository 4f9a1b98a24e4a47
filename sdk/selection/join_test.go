package selection

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// joinedPartitions have no rows, rows of which none, all, few or every second pass, and several chunks.
var joinedPartitions = []struct {
	rows   int64
	passes func(row int64) bool
}{
	{0, func(int64) bool { return true }},
	{700, func(int64) bool { return false }},
	{701, func(int64) bool { return true }},
	{3 * chunkRows, func(row int64) bool { return row%2 == 0 }},
	{chunkRows + 1, func(row int64) bool { return row%5000 == 4999 || row == chunkRows }},
}

// buildSelection makes the selection of some partitions of joinedPartitions.
func buildSelection(t *testing.T, m *dataset.Manifest, filter dataset.Digest, first int) *Selection {
	t.Helper()
	b, err := NewBuilder(m, filter)
	require.NoError(t, err)
	for i := range m.Partitions {
		p := joinedPartitions[first+i]
		passes := make([]bool, p.rows)
		for row := range passes {
			passes[row] = p.passes(int64(row))
		}
		require.NoError(t, b.Add(i, 0, passes))
	}
	s, err := b.Finish()
	require.NoError(t, err)
	return s
}

func joinedManifest(t *testing.T) *dataset.Manifest {
	t.Helper()
	var list []dataset.Partition
	for i, p := range joinedPartitions {
		list = append(list, dataset.Partition{Name: fmt.Sprintf("part-%d", i), Bytes: 10, Rows: p.rows,
			RowGroups: []int64{p.rows}, Content: dataset.Digest{byte(i)}})
	}
	m, err := dataset.NewManifest(list)
	require.NoError(t, err)
	return m
}

// TestJoin: the parts of partitions, which were made one by one, join to the bytes of the selection of all.
func TestJoin(t *testing.T) {
	m, filter := joinedManifest(t), dataset.Digest{7}
	whole := buildSelection(t, m, filter, 0)
	var file bytes.Buffer
	joined, err := Join(&file, m, filter, func(i int) (*Selection, error) {
		part, err := PartManifest(m.Partitions[i])
		require.NoError(t, err)
		made := buildSelection(t, part, filter, i)
		assert.LessOrEqual(t, int64(len(made.Encode())), MostBytes(m.Partitions[i].Rows))
		return made, nil
	})
	require.NoError(t, err)
	assert.Equal(t, whole.Encode(), file.Bytes())
	assert.Equal(t, &Joined{Digest: whole.Digest, Bytes: int64(file.Len()), Passing: whole.Counts()}, joined)

	path := filepath.Join(t.TempDir(), "joined")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	digest, err := CheckFile(path)
	require.NoError(t, err)
	assert.Equal(t, whole.Digest, digest)
}

// TestJoinRefusesOtherParts: a part of another file, of another number of rows, of another filter, or of several
// partitions is refused.
func TestJoinRefusesOtherParts(t *testing.T) {
	m, filter := joinedManifest(t), dataset.Digest{7}
	one := func(change func(*dataset.Partition), filter dataset.Digest) *Selection {
		p := m.Partitions[2]
		change(&p)
		part, err := PartManifest(p)
		require.NoError(t, err)
		b, err := NewBuilder(part, filter)
		require.NoError(t, err)
		require.NoError(t, b.Add(0, 0, make([]bool, p.Rows)))
		s, err := b.Finish()
		require.NoError(t, err)
		return s
	}
	same := func(*dataset.Partition) {}
	require.NoError(t, CheckPart(one(same, filter), m.Partitions[2], filter))
	for name, c := range map[string]struct {
		part *Selection
		want string
	}{
		"fewer rows": {one(func(p *dataset.Partition) { p.Rows, p.RowGroups = 700, []int64{700} }, filter),
			"700 rows were tested, and part-2 has 701"},
		"another file":       {one(func(p *dataset.Partition) { p.Content[0]++ }, filter), "another file than part-2"},
		"another name":       {one(func(p *dataset.Partition) { p.Name = "x" }, filter), "another file than part-2"},
		"another filter":     {one(same, dataset.Digest{8}), "another filter"},
		"several partitions": {buildSelection(t, m, filter, 0), "of 5 partitions, want part-2 alone"},
	} {
		err := CheckPart(c.part, m.Partitions[2], filter)
		require.ErrorIs(t, err, ErrPart, name)
		assert.ErrorContains(t, err, c.want, name)
		_, err = Join(&bytes.Buffer{}, m, filter, func(int) (*Selection, error) { return c.part, nil })
		assert.ErrorIs(t, err, ErrPart, name)
	}
}

// TestCheckFileFindsDamage: a byte that changed anywhere, a file that was cut, and a file of something else.
func TestCheckFileFindsDamage(t *testing.T) {
	whole := buildSelection(t, joinedManifest(t), dataset.Digest{7}, 0).Encode()
	path := filepath.Join(t.TempDir(), "file")
	check := func(b []byte) error {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := CheckFile(path)
		return err
	}
	require.NoError(t, check(whole))
	for _, at := range []int{0, 13, 50, 77, headerBytes + 3, len(whole) / 2, len(whole) - 1} {
		b := bytes.Clone(whole)
		b[at] ^= 4
		require.ErrorIs(t, check(b), ErrDamaged, "byte %d", at)
	}
	later := bytes.Clone(whole)
	later[10]++
	require.ErrorIs(t, check(later), ErrVersion)
	require.ErrorIs(t, check(whole[:len(whole)-1]), ErrDamaged)
	require.ErrorIs(t, check(whole[:20]), ErrDamaged)
	require.ErrorIs(t, check(nil), ErrDamaged)
}
