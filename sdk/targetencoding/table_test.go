package targetencoding

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawTable draws a table of few rows.
func drawTable(t *rapid.T) *Table {
	folds := rapid.IntRange(MinFolds, MaxFolds).Draw(t, "folds")
	b := NewBuilder(folds)
	for range rapid.IntRange(0, 4).Draw(t, "partitions") {
		hash := rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, 1 << 63, 12345}).Draw(t, "partition")
		require.NoError(t, b.AddPartition(Partition{hash}))
	}
	for range rapid.IntRange(0, 50).Draw(t, "rows") {
		key := rapid.SampledFrom([]int64{0, 1, -1, 7, math.MinInt64, math.MaxInt64, 1 << 40}).Draw(t, "key")
		require.NoError(t, b.Add(key,
			rapid.Bool().Draw(t, "has key"), rapid.IntRange(0, folds-1).Draw(t, "fold"),
			float32(rapid.Int64Range(-MaxTarget, MaxTarget).Draw(t, "label"))))
	}
	return b.Table()
}

// TestTableFormsRoundTrip checks both forms, and that no other bytes are a table.
func TestTableFormsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		b, err := table.AppendBinary(nil)
		require.NoError(t, err)
		var read Table
		require.NoError(t, read.UnmarshalBinary(b))
		require.Equal(t, *table, read)
		text, err := table.MarshalText()
		require.NoError(t, err)
		var fromText Table
		require.NoError(t, fromText.UnmarshalText(text))
		require.Equal(t, *table, fromText)
		one, err := table.Digest()
		require.NoError(t, err)
		other, err := read.Digest()
		require.NoError(t, err)
		require.Equal(t, one, other)

		for n := range b {
			require.ErrorIs(t, new(Table).UnmarshalBinary(b[:n]), ErrDamaged)
		}
		require.ErrorIs(t, new(Table).UnmarshalBinary(append(slices.Clone(b), 0)), ErrDamaged)
		require.ErrorIs(t, new(Table).UnmarshalText(append(slices.Clone(text), '\n')), ErrDamaged)
		require.ErrorIs(t, new(Table).UnmarshalText([]byte("?")), ErrDamaged)
	})
}

// TestTableRules checks every rule of a table.
func TestTableRules(t *testing.T) {
	good := func() *Table {
		return &Table{Totals: []Cell{{3, 2}, {1, 0}}, Partitions: []Partition{{3}, {8}}, Keys: []int64{4, 9},
			Cells: []Cell{{1, 1}, {0, 0}, {2, 1}, {1, 0}}}
	}
	require.NoError(t, good().checkRules())
	for name, spoil := range map[string]func(t *Table){
		"one fold":             func(t *Table) { t.Totals = t.Totals[:1] },
		"too many folds":       func(t *Table) { t.Totals = make([]Cell, MaxFolds+1) },
		"cells of no key":      func(t *Table) { t.Cells = append(t.Cells, Cell{}) },
		"keys out of order":    func(t *Table) { t.Keys[1] = 4 },
		"a partition twice":    func(t *Table) { t.Partitions[1] = t.Partitions[0] },
		"more rows than all":   func(t *Table) { t.Cells[0].Rows = 2 },
		"rows below 0":         func(t *Table) { t.Cells[1].Rows = -1 },
		"a sum without rows":   func(t *Table) { t.Cells[1].Sum = 1 },
		"a sum too large":      func(t *Table) { t.Cells[3].Sum = MaxTarget + 1 },
		"a key without rows":   func(t *Table) { t.Cells[0] = Cell{} },
		"a total sum":          func(t *Table) { t.Totals[1].Sum = -MaxTarget - 1 },
		"too many rows of all": func(t *Table) { t.Totals[0].Rows = MaxRows },
	} {
		table := good()
		spoil(table)
		assert.ErrorIs(t, table.checkRules(), ErrDamaged, name)
		_, err := table.AppendBinary(nil)
		assert.ErrorIs(t, err, ErrDamaged, name)
		_, err = table.MarshalText()
		assert.ErrorIs(t, err, ErrDamaged, name)
	}
	table := good()
	table.Cells[3].Sum = MaxTarget
	assert.NoError(t, table.checkRules())
	table.Totals[0].Rows = MaxRows - 1
	assert.NoError(t, table.checkRules())
}

// TestLabels checks which labels are counted.
func TestLabels(t *testing.T) {
	b := NewBuilder(2)
	for _, label := range []float32{0, 1, -1, MaxTarget, -MaxTarget} {
		require.NoError(t, b.Add(1, true, 1, label))
	}
	for _, label := range []float32{0.5, MaxTarget + 2, -MaxTarget - 2, float32(math.NaN()), float32(math.Inf(1)),
		float32(math.Inf(-1))} {
		require.ErrorIs(t, b.Add(1, true, 1, label), ErrTarget)
	}
	assert.Equal(t, []Cell{{}, {5, 0}}, b.Table().Cells)
	b.rows = MaxRows
	require.ErrorIs(t, b.Add(1, true, 1, 1), ErrTarget)
}

// TestKeysAreBounded fills a table with keys, and reads it back.
func TestKeysAreBounded(t *testing.T) {
	b := NewBuilder(2)
	for key := range int64(MaxKeys) {
		require.NoError(t, b.Add(key*key, true, int(key%2), 1))
	}
	require.ErrorIs(t, b.Add(-1, true, 0, 1), ErrKeys)
	require.NoError(t, b.Add(-1, false, 0, 1))
	require.NoError(t, b.Add(4, true, 1, 1))
	form, err := b.Table().AppendBinary(nil)
	require.NoError(t, err)
	var read Table
	require.NoError(t, read.UnmarshalBinary(form))
	assert.Len(t, read.Keys, MaxKeys)
	more := *b.Table()
	more.Keys, more.Cells = append(more.Keys, math.MaxInt64), append(more.Cells, Cell{1, 1}, Cell{})
	more.Totals[0].Rows++
	_, err = more.AppendBinary(nil)
	require.ErrorIs(t, err, ErrDamaged)
}

// TestPartitionsAreBounded checks that a table can have MaxPartitions partitions and not one more.
func TestPartitionsAreBounded(t *testing.T) {
	b := NewBuilder(2)
	for hash := range uint64(MaxPartitions) {
		require.NoError(t, b.AddPartition(Partition{hash << 40}))
	}
	require.NoError(t, b.AddPartition(Partition{1 << 40}))
	require.ErrorIs(t, b.AddPartition(Partition{1}), ErrPartitions)
	form, err := b.Table().AppendBinary(nil)
	require.NoError(t, err)
	var read Table
	require.NoError(t, read.UnmarshalBinary(form))
	assert.Equal(t, b.Table(), &read)
	other := NewBuilder(2)
	require.NoError(t, other.AddPartition(Partition{1}))
	require.ErrorIs(t, b.AddTable(other.Table()), ErrPartitions)
	read.Partitions = append(read.Partitions, Partition{math.MaxUint64})
	_, err = read.AppendBinary(nil)
	require.ErrorIs(t, err, ErrDamaged)
}

func FuzzTable(f *testing.F) {
	b := NewBuilder(3)
	for hash := range uint64(3) {
		if err := b.AddPartition(Partition{hash * 1e18}); err != nil {
			f.Fatal(err)
		}
	}
	for key := range int64(5) {
		if err := b.Add(key-2, key != 3, int(key)%3, float32(key)); err != nil {
			f.Fatal(err)
		}
	}
	form, err := b.Table().AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(form)
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, form []byte) {
		var table Table
		if err := table.UnmarshalBinary(form); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := table.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, form, again)
	})
}
