package block

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
)

// lists returns lists of 2, 0, 3 and 1 integers, of which those with a 0 in valid are null.
func lists(valid ...byte) Values {
	return Values{Kind: program.Int64, Count: 6, Int64s: []int64{1, 2, 3, 4, 5, 6}, Valid: valid, List: true,
		Lengths: []int32{2, 0, 3, 1}}
}

func TestEmptyNullLists(t *testing.T) {
	lent := lists(1, 0, 1, 1, 1, 1)
	v, b := lent, new(Buffers)
	b.EmptyNullLists(&v)
	assert.Equal(t, []int64{3, 4, 5, 6}, v.Int64s)
	assert.Equal(t, []int32{0, 0, 3, 1}, v.Lengths)
	assert.Equal(t, 4, v.Count)
	assert.Nil(t, v.Valid)
	assert.Equal(t, lists(1, 0, 1, 1, 1, 1), lent, "what the chain does not own stays")
}

// texts returns lists of 2, 0, 3 and 1 strings of bytes behind a string of other lists, of which those with a 0 in
// valid are null.
func texts(valid ...byte) Values {
	return Values{Kind: program.Bytes, Count: 6, Offsets: []uint32{1, 2, 4, 4, 7, 8, 9}, Data: []byte("-abbddde."),
		Valid: valid, List: true, Lengths: []int32{2, 0, 3, 1}}
}

func TestEmptyNullListsOfBytes(t *testing.T) {
	for _, c := range []struct {
		valid   []byte
		data    string
		offsets []uint32
		lengths []int32
	}{
		{[]byte{1, 0, 1, 1, 1, 1}, "ddde.", []uint32{0, 0, 3, 4, 5}, []int32{0, 0, 3, 1}},
		{[]byte{1, 1, 1, 0, 1, 1}, "abb.", []uint32{0, 1, 3, 4}, []int32{2, 0, 0, 1}},
		{[]byte{1, 1, 1, 1, 1, 0}, "abbddde", []uint32{0, 1, 3, 3, 6, 7}, []int32{2, 0, 3, 0}},
		{[]byte{0, 1, 1, 0, 1, 0}, "", []uint32{0}, []int32{0, 0, 0, 0}},
	} {
		lent := texts(c.valid...)
		v, b := lent, new(Buffers)
		b.EmptyNullLists(&v)
		assert.Equal(t, c.data, string(v.Data))
		assert.Equal(t, c.offsets, v.Offsets)
		assert.Equal(t, c.lengths, v.Lengths)
		assert.Equal(t, len(c.offsets)-1, v.Count)
		assert.Nil(t, v.Valid)
		assert.Equal(t, texts(c.valid...), lent, "what the chain does not own stays")
		assert.Positive(t, b.Size())
	}
}

// TestKeptBytesAreCopied checks that a value keeps strings of bytes that lie in the buffers of a chain.
func TestKeptBytesAreCopied(t *testing.T) {
	var g GraphValue
	v, b := texts(1, 1, 1, 0, 1, 1), new(Buffers)
	b.EmptyNullLists(&v)
	g.KeepView(&v)
	clear(b.Data)
	clear(b.Offsets)
	assert.Equal(t, "abb.", string(g.View.Data))
	assert.Equal(t, []uint32{0, 1, 3, 4}, g.View.Offsets)
	assert.Positive(t, g.Size())

	g.SetTexts([]int32{1, 1}, []uint32{0, 2, 3}, []byte("abc"))
	assert.Equal(t, 2, g.View.Count)
	own := g.View
	g.KeepView(&own)
	assert.Equal(t, "abc", string(g.View.Data), "a value's own bytes stay")
}

func TestRowExtent(t *testing.T) {
	v, start := texts(), 0
	extents := []program.Extent{{Elements: 2, Bytes: 3}, {}, {Elements: 3, Bytes: 4}, {Elements: 1, Bytes: 1}}
	for row, want := range extents {
		assert.Equal(t, want, v.RowExtent(row, &start), "row %d", row)
	}
	assert.Equal(t, 6, start)
	v, start = lists(), 2
	assert.Equal(t, program.Extent{Elements: 3}, v.RowExtent(2, &start))
	assert.Equal(t, 5, start)
	scalar := Values{Kind: program.Bytes, Count: 2, Offsets: []uint32{0, 4, 9}}
	start = 1
	assert.Equal(t, program.Extent{Elements: 1, Bytes: 5}, scalar.RowExtent(1, &start))
}

func TestValidOutsideNullLists(t *testing.T) {
	v, b := lists(1, 1, 1, 0, 1, 1), new(Buffers)
	assert.Equal(t, []byte{1, 1, 0, 0, 0, 1}, b.ValidOutsideNullLists(&v))
	v.Valid = nil
	assert.Nil(t, b.ValidOutsideNullLists(&v))
}

func TestRowsFrom(t *testing.T) {
	v, start := lists(1, 0, 1, 1, 1, 1), 0
	first := v.RowsFrom(0, 2, &start)
	assert.Equal(t, []int64{1, 2}, first.Int64s)
	assert.Equal(t, []byte{1, 0}, first.Valid)
	second := v.RowsFrom(2, 2, &start)
	assert.Equal(t, []int64{3, 4, 5, 6}, second.Int64s)
	assert.Equal(t, []int32{3, 1}, second.Lengths)
	assert.Nil(t, second.Valid, "none of these values is null")
	for value, row := range []int{0, 0, 2, 2, 2, 3} {
		assert.Equal(t, row, v.RowOf(value), "value %d", value)
	}
}

// writing is a step that writes ids to the destination of the running step.
type writing struct{ wide, narrow int }

func (w *writing) Run(b *Buffers, v *Values) error {
	w.wide, w.narrow = len(b.IntDestination(v.Count)), len(b.IDs32Destination())
	b.IntDestination(v.Count)[0] = 7
	return nil
}

func TestOnlyTheLastStepWritesToTheDestination(t *testing.T) {
	b, s, final := new(Buffers), new(writing), make([]int64, 5)
	b.Final = Destination{IDs: final, IDs32: make([]byte, 20)}
	v := Values{Kind: program.Int64, Count: 3}
	require.NoError(t, s.Run(b, &v))
	assert.Zero(t, final[0])
	assert.Equal(t, writing{wide: 3}, *s)
	require.NoError(t, b.RunLast(s, &v))
	assert.EqualValues(t, 7, final[0])
	assert.Equal(t, writing{wide: 3, narrow: 12}, *s)
	final[0], v.Valid = 0, []byte{1, 0, 1}
	require.NoError(t, b.RunLast(s, &v))
	assert.Zero(t, final[0], "ids with nulls among them are written after the nulls are left out")
	final[0], v.Valid, v.Count = 0, nil, 6
	require.NoError(t, b.RunLast(s, &v))
	assert.Zero(t, final[0], "the destination has room for five")
}

func TestScoresFollowTheirIDs(t *testing.T) {
	var g GraphValue
	v := lists(1, 0, 1, 1, 1, 1)
	v.Scores = []float32{1, 2, 3, 4, 5, 6}
	cut := g.EmptyNullLists(new(Buffers), 1, &v)
	assert.Equal(t, []int64{3, 4, 5, 6}, cut.Int64s)
	assert.Equal(t, []float32{3, 4, 5, 6}, cut.Scores)
	assert.Equal(t, 6, v.Count, "the input stays")
}

func TestScalarsBecomeLists(t *testing.T) {
	var g GraphValue
	v := Values{Kind: program.Int64, Count: 3, Int64s: []int64{1, 2, 3}}
	assert.Equal(t, IDLists{[]int32{1, 1, 1}, []int64{1, 2, 3}}, g.ListOf(0, &v))
	v.Valid = []byte{1, 0, 1}
	assert.Equal(t, IDLists{[]int32{1, 0, 1}, []int64{1, 3}}, g.ListOf(0, &v))
	v = Values{Kind: program.Float32, Count: 2, Float32s: []float32{1, 2}, Valid: []byte{0, 1}}
	lengths, scores := g.ScoresOf(1, &v)
	assert.Equal(t, []int32{0, 1}, lengths)
	assert.Equal(t, []float32{2}, scores)
}

func TestStateLasts(t *testing.T) {
	var g GraphValue
	*StateOf[int](&g) = 3
	*StateOf[string](&g) = "of another operator"
	assert.Equal(t, 3, *StateOf[int](&g))
}

func TestOnce(t *testing.T) {
	type key struct{ number int }
	tables, calls := NewTables(context.Background(), nil), 0
	get := func(k key, failure error) (int, error) {
		return Once(tables, k, func() (int, error) { calls++; return calls, failure })
	}
	_, err := get(key{1}, errors.New("no table"))
	require.Error(t, err)
	for _, c := range []struct{ key, want int }{{1, 2}, {2, 3}, {1, 2}, {2, 3}} {
		got, err := get(key{c.key}, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "key %d", c.key)
	}
}
