package vocabulary

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// testColumn is a column of a small data set: the ids of its rows. A row without ids is null.
type testColumn [][]int64

// scalars makes a column of one id a row.
func scalars(ids ...int64) testColumn {
	c := make(testColumn, len(ids))
	for i, id := range ids {
		c[i] = []int64{id}
	}
	return c
}

// flat returns the column as a mini-batch holds it.
func (c testColumn) flat() (ids []int64, lengths []int32) {
	for _, row := range c {
		ids, lengths = append(ids, row...), append(lengths, int32(len(row)))
	}
	return ids, lengths
}

// fixed reports whether every row has one id.
func (c testColumn) fixed() bool {
	for _, row := range c {
		if len(row) != 1 {
			return false
		}
	}
	return true
}

// columnsNamed returns n columns, each with a chain of its own.
func columnsNamed(n int) []Column {
	columns := make([]Column, n)
	for i := range columns {
		columns[i] = Column{Name: fmt.Sprintf("cat_%d", i), Chain: Digest(sha256.Sum256([]byte{byte(i)}))}
	}
	return columns
}

// addAll folds all rows of columns in.
func addAll(t require.TestingT, b *Builder, columns []testColumn) {
	for i, c := range columns {
		ids, lengths := c.flat()
		if c.fixed() {
			lengths = nil
		}
		require.NoError(t, b.Add(i, 0, ids, lengths))
	}
}

// finish ends a builder and loads what it wrote.
func finish(t require.TestingT, b *Builder, path string) *Vocabulary {
	built, err := b.Finish(path)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	v, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, built.Digest, v.Digest)
	for i := range v.Tables {
		require.EqualValues(t, len(v.Tables[i]), built.Tables[i].Keys)
	}
	return v
}

// build makes the vocabulary of columns.
func build(t *testing.T, rules Rules, columns ...testColumn) *Vocabulary {
	t.Helper()
	b, err := NewBuilder(columnsNamed(len(columns)), rules, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	addAll(t, b, columns)
	return finish(t, b, filepath.Join(t.TempDir(), "v.vocab"))
}

// batchOf makes a mini-batch of columns, and its schema. A column of lists has List set.
func batchOf(t require.TestingT, ids tensor.DType, columns []testColumn) *tensor.MiniBatch {
	s := &tensor.Schema{IDs: ids}
	for i, c := range columns {
		s.Keys = append(s.Keys, tensor.Key{Name: fmt.Sprintf("cat_%d", i), List: !c.fixed()})
	}
	mb := tensor.New(s, len(columns[0]), nil)
	mb.Values32, mb.Values64 = []int32{}, []int64{}
	for _, c := range columns {
		values, lengths := c.flat()
		if !s.Fixed() {
			mb.Lengths = append(mb.Lengths, lengths...)
		}
		for _, id := range values {
			if ids == tensor.Int32 {
				mb.Values32 = append(mb.Values32, int32(id))
			} else {
				mb.Values64 = append(mb.Values64, id)
			}
		}
	}
	require.NoError(t, mb.Validate())
	return mb
}

// apply looks columns up in a vocabulary. lists says that the columns are lists.
func apply(
	t require.TestingT, v *Vocabulary, unknown Unknown, lists bool, columns ...testColumn,
) (*tensor.MiniBatch, error) {
	in := batchOf(t, tensor.Int64, columns)
	out := *in.Schema
	out.Keys = append([]tensor.Key{}, in.Schema.Keys...)
	lookups := make([]*Lookup, len(columns))
	for i, c := range columnsNamed(len(columns)) {
		l, err := v.Lookup(c, unknown, lists)
		require.NoError(t, err)
		lookups[i] = l
		out.Keys[i].List = out.Keys[i].List && !l.Fills() || l.Drops()
	}
	a, err := NewApplier(in.Schema, &out, lookups)
	require.NoError(t, err)
	mb, err := a.Apply(in, Rows{})
	if err == nil {
		require.NoError(t, mb.Validate())
	}
	return mb, err
}
