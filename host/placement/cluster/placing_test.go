package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/source"
)

// described opens a file for its description, as the partition p.
func described(t *testing.T, path string) *File {
	t.Helper()
	f, err := OpenFile(t.Context(), source.ParseLocation(path), "p", Format{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return f
}

// TestPlaceAgain: the same file needs only the copies that it lacks; another file of its name is refused, also one that
// differs from it only in its rows' bytes, which the footer does not tell.
func TestPlaceAgain(t *testing.T) {
	n0, n1 := startNode(t, "n0", 1), startNode(t, "n1", 1)
	path := file(t, 1, 500)
	same := described(t, path)
	put := func(c *Cluster, copies []placement.Copy) error {
		return c.Carry(t.Context(), copies,
			func(name string) (*File, error) {
				return OpenFile(t.Context(), source.ParseLocation(path), name, Format{})
			}, nil)
	}
	c := open(t, ready, n0, n1)
	copies, wanted, err := c.Place(t.Context(), []*File{same}, 2)
	require.NoError(t, err)
	require.Len(t, copies, 2)
	require.Len(t, wanted, 1)
	assert.EqualValues(t, 2, wanted[0].Copies)
	assert.EqualValues(t, 500, wanted[0].Rows)
	assert.False(t, c.Lists(copies))
	require.NoError(t, put(c, copies[:1]), "the other one is not made")

	c = open(t, ready, n0, n1)
	c.wanted["p"] = wanted[0]
	assert.False(t, c.Lists(copies))
	missing, wanted, err := c.Place(t.Context(), []*File{same}, 0)
	require.NoError(t, err)
	assert.Empty(t, wanted, "it is kept already")
	require.Equal(t, copies[1:], missing)
	require.NoError(t, put(c, missing))

	c = open(t, ready, n0, n1)
	assert.True(t, c.Lists(copies))
	missing, wanted, err = c.Place(t.Context(), []*File{same}, 2)
	require.NoError(t, err)
	assert.Empty(t, missing)
	require.Len(t, wanted, 1, "this cluster was opened without numbers")

	_, _, err = c.Place(t.Context(), []*File{described(t, file(t, 2, 600))}, 1)
	require.ErrorIs(t, err, ErrOther)
	require.ErrorContains(t, err, "--prefix")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[40] ^= 1
	changed := filepath.Join(t.TempDir(), "changed.parquet")
	require.NoError(t, os.WriteFile(changed, b, 0o600))
	other := described(t, changed)
	require.NotEqual(t, same.Content, other.Content)
	other.Content = same.Content // as of larger files, whose digest covers samples
	_, _, err = c.Place(t.Context(), []*File{other}, 1)
	require.ErrorIs(t, err, ErrOther)
	require.ErrorContains(t, err, "SHA-256")
	other, err = OpenFile(t.Context(), source.ParseLocation(changed), "p", Format{})
	require.NoError(t, err)
	other.Content = same.Content
	require.ErrorContains(t, c.put(t.Context(), copies[0].To, other), "another partition of the name",
		"nor does the node take it")
	require.NoError(t, other.Close())
}

func TestNumbersOfCopies(t *testing.T) {
	node := &apiv1.NodeRecord{State: "ready",
		Status: &apiv1.NodeStatus{Name: "n", Partitions: []*apiv1.Partition{{Name: "a", Rows: 1}, {Name: "b", Rows: 2}},
			Drives: []*apiv1.Drive{{Name: "d", Partitions: []string{"a", "b"}, State: "ready"}}}}
	c, err := Open([]*apiv1.NodeRecord{node},
		[]*apiv1.PartitionCopies{{Partition: "a", Copies: 3, Rows: 1},
			{Partition: "lost", Copies: 2, Rows: 7}}, identity.Options{})
	require.NoError(t, err)
	defer c.Close()
	numbers := func(list []placement.Partition) map[string]int {
		m := map[string]int{}
		for _, p := range list {
			m[p.Name] = p.Copies
		}
		return m
	}
	all := c.Partitions(nil)
	assert.Equal(t, map[string]int{"a": 3, "b": 0}, numbers(all))
	five := func(string) int { return 5 }
	assert.Equal(t, map[string]int{"a": 3, "b": 5}, numbers(c.Numbered(all, 0, five)))
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, numbers(c.Numbered(all, 2, five)))
	assert.Equal(t, map[string]int{"a": 3, "b": 0}, numbers(all), "the list itself is left as it is")
	assert.Equal(t, 1, c.Below(c.Numbered(all, 2, nil)))
	assert.Zero(t, c.Below(c.Numbered(all, 3, nil)))
	gone := c.Gone(nil)
	require.Len(t, gone, 1)
	assert.Equal(t, placement.Partition{Name: "lost", Rows: 7, Copies: 2}, gone[0])
	assert.Empty(t, c.Gone(func(name string) bool { return name == "a" }))
	assert.Len(t, c.Want(c.Numbered(all, 3, nil)), 1, "a's is kept, b's is not")
}

func TestAwait(t *testing.T) {
	bad := errors.New("not yet")
	times := 0
	look := func(again bool, until int) func() (bool, error) {
		times = 0
		return func() (bool, error) {
			if times++; times > until {
				return false, nil
			}
			return again, bad
		}
	}
	require.NoError(t, Await(t.Context(), time.Minute, look(true, 2)))
	assert.Equal(t, 3, times)
	require.ErrorIs(t, Await(t.Context(), time.Minute, look(false, 2)), bad)
	assert.Equal(t, 1, times, "another look would not help")
	require.ErrorIs(t, Await(t.Context(), 0, look(true, 2)), bad)
	assert.Equal(t, 1, times, "there is no time for another")
}
