package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestApplyIsTheDefinition compares an applier with what the rules say of each row, over all policies.
func TestApplyIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Base: 10, Buckets: 5, Rare: SomeID(2)}
		if rapid.Bool().Draw(t, "null id") {
			rules.Null = SomeID(1)
		}
		unknown := rapid.SampledFrom([]Unknown{UnknownFail, UnknownRare, UnknownBucket, UnknownDrop}).Draw(t, "unknown")
		lists := rapid.Bool().Draw(t, "lists")
		longest := 3
		if !lists {
			longest = 1
		}
		least := rapid.SampledFrom([]int{0, min(1, longest)}).Draw(t, "least length")
		rows := rapid.IntRange(1, 3000).Draw(t, "rows")
		random := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(0, 40), least, longest), 7, 7).Draw(t, "column")
		column := make(testColumn, rows)
		for i := range column {
			column[i] = random[i%7]
		}
		v := &Vocabulary{Rules: rules.Normalize(), Columns: columnsNamed(1), Tables: [][]int64{{30, 7, 12, 0, 22, 31}}}
		require.NoError(t, v.prepareNext(v.Tables[0]))

		var ids []int64
		var lengths []int32
		var wrong *UnknownError
		for row, keys := range column {
			n := int32(0)
			add := func(id int64) { ids, n = append(ids, id), n+1 }
			for _, key := range keys {
				index := int64(-1)
				for i, have := range v.Tables[0] {
					if have == key {
						index = int64(i)
					}
				}
				switch {
				case index >= 0:
					add(10 + index)
				case unknown == UnknownRare:
					add(2)
				case unknown == UnknownBucket:
					add(5 + sigridhash.Reference(key, 0, 5))
				case unknown == UnknownFail && wrong == nil:
					wrong = &UnknownError{Row: int64(row), Column: "cat_0", Key: key}
				}
			}
			if len(keys) == 0 && rules.Null.Given && !lists {
				add(1)
			}
			lengths = append(lengths, n)
		}
		mb, err := apply(t, v, unknown, lists, column)
		if wrong != nil {
			var got *UnknownError
			require.ErrorAs(t, err, &got)
			assert.Equal(t, wrong, got)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, append([]int64{}, ids...), append([]int64{}, mb.Values64...))
		if !mb.Schema.Fixed() {
			assert.Equal(t, lengths, mb.Lengths)
		}
	})
}

// TestAppliedMiniBatches checks what a lookup leaves: other keys, label and dense features, weights, narrower ids, and
// memory that is given back once.
func TestAppliedMiniBatches(t *testing.T) {
	v := build(t, Rules{Base: 2, Null: SomeID(1)}, scalars(1<<40, 7))
	l, err := v.Lookup(columnsNamed(1)[0], UnknownDrop, false)
	require.NoError(t, err)
	least, greatest := l.Range()
	assert.Equal(t, [2]int64{1, 3}, [2]int64{least, greatest})
	made := &tensor.Schema{Label: true, Dense: []string{"d"}, IDs: tensor.Int64, Weights: true,
		Keys: []tensor.Key{{Name: "cat_0", List: true}, {Name: "other", List: true}}}
	schema := *made
	schema.IDs = tensor.Int32
	a, err := NewApplier(made, &schema, []*Lookup{l, nil})
	require.NoError(t, err)
	released := 0
	in := tensor.New(made, 3, func() { released++ })
	in.Label, in.Dense = []float32{1, 0, 1}, []float32{4, 5, 6}
	in.Values64, in.Lengths = []int64{7, 99, 5, 6, 4}, []int32{1, 0, 1, 2, 1, 0}
	in.Weights = []float32{.25, .5, .1, .2, .3}
	mb, err := a.Apply(in, Rows{})
	require.NoError(t, err)
	require.NoError(t, mb.Validate())
	assert.Equal(t, []int32{3, 1, 5, 6, 4}, mb.Values32)
	assert.Equal(t, []int32{1, 1, 0, 2, 1, 0}, mb.Lengths)
	assert.Equal(t, []float32{.25, 1, .1, .2, .3}, mb.Weights)
	assert.Equal(t, in.Label, mb.Label)
	assert.Equal(t, in.Dense, mb.Dense)
	assert.Zero(t, released)
	mb.Release()
	assert.Equal(t, 1, released)

	// An error gives the memory back too.
	l, err = v.Lookup(columnsNamed(1)[0], UnknownFail, true)
	require.NoError(t, err)
	schema.IDs = tensor.Int64
	a, err = NewApplier(made, &schema, []*Lookup{l, nil})
	require.NoError(t, err)
	in = tensor.New(made, 1, func() { released++ })
	in.Values64, in.Lengths, in.Weights = []int64{9}, []int32{1, 0}, []float32{1}
	_, err = a.Apply(in, Rows{})
	require.ErrorContains(t, err, "lacks the key 9")
	assert.Equal(t, 2, released)
}

// idAt returns an id of a mini-batch.
func idAt(mb *tensor.MiniBatch, i int) int64 {
	if mb.Schema.IDs == tensor.Int64 {
		return mb.Values64[i]
	}
	return int64(mb.Values32[i])
}

// TestIDsLieInTheMemoryOfKeys looks up columns of several blocks between columns that stay, for all types of ids, dense
// and scattered keys, in place and without an allocation for the ids.
func TestIDsLieInTheMemoryOfKeys(t *testing.T) {
	const rows = 2*lookupBlock + 5
	for _, types := range [][2]tensor.DType{
		{tensor.Int64, tensor.Int64}, {tensor.Int64, tensor.Int32}, {tensor.Int32, tensor.Int32},
	} {
		for _, step := range []int64{1, 1 << 13} {
			for _, base := range []int64{0, 3} {
				var keys testColumn
				for i := range int64(rows) {
					keys = append(keys, []int64{(i * 7 % rows) * step})
				}
				v := build(t, Rules{Base: base, Rare: SomeID(-5)}, keys[1:], keys[1:])
				made := &tensor.Schema{IDs: types[0],
					Keys: []tensor.Key{{Name: "a"}, {Name: "cat_0"}, {Name: "b"}, {Name: "cat_1"}}}
				schema := *made
				schema.IDs = types[1]
				lookups := make([]*Lookup, 4)
				for i, c := range columnsNamed(2) {
					l, err := v.Lookup(c, UnknownRare, false)
					require.NoError(t, err)
					lookups[2*i+1] = l
				}
				a, err := NewApplier(made, &schema, lookups)
				require.NoError(t, err)
				in := tensor.New(made, rows, nil)
				for column := range 4 {
					for _, key := range keys {
						if types[0] == tensor.Int64 {
							in.Values64 = append(in.Values64, key[0]+int64(column/2))
						} else {
							in.Values32 = append(in.Values32, int32(key[0])+int32(column/2))
						}
					}
				}
				before := in.Clone()
				mb, err := a.Apply(in, Rows{})
				require.NoError(t, err)
				require.NoError(t, mb.Validate())
				have := map[int64]int64{}
				for i, key := range v.Tables[0] {
					have[key] = base + int64(i)
				}
				for i := range 4 * rows {
					key, id := idAt(before, i), idAt(mb, i)
					want, ok := have[key]
					switch {
					case i/rows%2 == 0:
						want = key
					case !ok:
						want = -5
					}
					if id != want {
						require.Equal(t, want, id, "types %v, step %d, base %d: key %d at %d", types, step, base, key, i)
					}
				}
				size := testing.AllocsPerRun(5, func() { _, _ = a.Apply(in, Rows{}) })
				assert.LessOrEqual(t, size, 2.0, "the mini-batch, and nothing for its ids")
			}
		}
	}
}

// TestShapesThatLookupsCannotMake checks the refusals of NewApplier and of Lookup.
func TestShapesThatLookupsCannotMake(t *testing.T) {
	v := build(t, Rules{}, scalars(1, 2))
	c := columnsNamed(1)[0]
	for _, u := range []Unknown{UnknownRare, UnknownBucket, 9} {
		_, err := v.Lookup(c, u, false)
		require.ErrorIs(t, err, ErrRules)
	}
	_, err := v.Lookup(Column{Name: "dog"}, 0, false)
	require.ErrorIs(t, err, ErrOther)
	_, err = v.Lookup(Column{Name: c.Name}, 0, false)
	require.ErrorIs(t, err, ErrOther)
	l, err := v.Lookup(c, UnknownDrop, false)
	require.NoError(t, err)
	schema := func(ids tensor.DType, lists ...bool) *tensor.Schema {
		s := &tensor.Schema{IDs: ids}
		for _, list := range lists {
			s.Keys = append(s.Keys, tensor.Key{Name: "k", List: list})
		}
		return s
	}
	for _, wrong := range [][2]*tensor.Schema{
		{schema(tensor.Int64, false), schema(tensor.Int64, false)},
		{schema(tensor.Int64, false, false), schema(tensor.Int64, true)},
		{schema(tensor.Int32, false), schema(tensor.Int64, true)},
	} {
		_, err := NewApplier(wrong[0], wrong[1], []*Lookup{l})
		require.ErrorIs(t, err, tensor.ErrShape)
	}
}

// TestCompare compares two vocabularies of one pipeline.
func TestCompare(t *testing.T) {
	a := build(t, Rules{Base: 2}, scalars(1, 2, 3), scalars(5))
	b := build(t, Rules{Base: 2}, scalars(1, 3, 2, 9), scalars(5), scalars(6, 7))
	b.Columns[1].Chain[0] ^= 1
	got, err := Compare(a, b)
	require.NoError(t, err)
	assert.Equal(t, []ColumnDifference{
		{Column: "cat_0", Before: 3, After: 4, Same: 1, Moved: 2, Added: 1},
		{Column: "cat_1", OtherChain: true, Before: 1, After: 1, Same: 1},
		{Column: "cat_2", After: 2, Added: 2},
	}, got)
	got, err = Compare(b, a)
	require.NoError(t, err)
	assert.Equal(t, int64(1), got[0].Removed)
	assert.Equal(t, int64(2), got[2].Removed)
}
