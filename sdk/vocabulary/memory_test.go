package vocabulary

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/hugepages"
	"github.com/millrace/millrace/sdk/tensor"
)

// requireSame checks that a vocabulary in memory is the one of a file, and that lookups in it are.
func requireSame(t require.TestingT, want, got *Vocabulary) {
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, want.Rules, got.Rules)
	require.Equal(t, want.Columns, got.Columns)
	require.Len(t, got.Tables, len(want.Tables))
	for i, keys := range want.Tables {
		require.Equal(t, append([]int64{}, keys...), append([]int64{}, got.Tables[i]...))
		sought := append(append([]int64{}, keys...), 0, -1, 1, math.MinInt64, math.MaxInt64)
		a, b := make([]int32, len(sought)), make([]int32, len(sought))
		wantTable, err := want.prepared[i]()
		require.NoError(t, err)
		gotTable, err := got.prepared[i]()
		require.NoError(t, err)
		unit.Lookup(wantTable, a, sought)
		unit.Lookup(gotTable, b, sought)
		require.Equal(t, a, b)
	}
}

// written makes the vocabulary of columns through files.
func written(t require.TestingT, columns []testColumn, rules Rules, dir string) *Vocabulary {
	b, err := NewBuilder(columnsNamed(len(columns)), rules, BuilderOptions{Folder: dir})
	require.NoError(t, err)
	addAll(t, b, columns)
	return finish(t, b, filepath.Join(dir, "written.vocab"))
}

// TestVocabulariesInMemoryAreThoseOfFiles adds rows in pieces, in any order, of goroutines, and lets memory be short
// at any time. The vocabulary is the one that a Builder writes.
func TestVocabulariesInMemoryAreThoseOfFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, columns := drawRules(t), drawColumns(t, rapid.IntRange(1, 3).Draw(t, "columns"))
		dir := folder(t)
		want := written(t, columns, rules, dir)
		m, err := NewMemoryBuilder(columnsNamed(len(columns)), rules, BuilderOptions{Folder: dir})
		require.NoError(t, err)
		type piece struct{ column, first, end int }
		var pieces []piece
		for i, c := range columns {
			for first := 0; first < len(c); {
				end := min(len(c), first+rapid.IntRange(1, 16).Draw(t, "rows of a piece"))
				pieces = append(pieces, piece{i, first, end})
				first = end
			}
		}
		if rapid.Bool().Draw(t, "out of order") {
			pieces = rapid.Permutation(pieces).Draw(t, "order of pieces")
		}
		short := rapid.IntRange(0, 2*len(pieces)).Draw(t, "memory is short at")
		threads := rapid.SampledFrom([]int{1, 3}).Draw(t, "threads")
		work := make(chan int)
		var group sync.WaitGroup
		errs := make([]error, len(pieces))
		for range threads {
			group.Go(func() {
				for i := range work {
					p := pieces[i]
					if i == short {
						m.short.Store(true)
					}
					ids, lengths := columns[p.column][p.first:p.end].flat()
					if columns[p.column].fixed() {
						lengths = nil
					}
					errs[i] = m.Add(p.column, uint64(p.first), ids, lengths)
				}
			})
		}
		for i := range pieces {
			work <- i
		}
		close(work)
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		got, err := m.Vocabulary()
		require.NoError(t, err)
		require.NoError(t, m.Close())
		requireSame(t, want, got)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 2, "the files of the other builder only")
	})
}

// TestVocabulariesInLittleMemory builds more keys than memory holds, in one order and in many sequences.
func TestVocabulariesInLittleMemory(t *testing.T) {
	const rows, block = 200_000, 1000
	random := rand.New(rand.NewPCG(8, 9))
	columns := make([]testColumn, 2)
	ids := make([][]int64, 2)
	for i := range ids {
		ids[i] = make([]int64, rows)
		for row := range ids[i] {
			ids[i][row] = random.Int64N(1<<40)*int64(1-i) + random.Int64N(200_000)*int64(i)
		}
		columns[i] = scalars(ids[i]...)
	}
	want := written(t, columns, Rules{}, t.TempDir())
	for _, c := range []struct {
		name     string
		memory   int64
		step     int // blocks between one and the next
		builders int // tables that moved
	}{
		{"enough", 1 << 30, 1, 0}, {"little", 1 << 20, 1, 2}, {"one of two tables", 32 << 20, 1, -1},
		{"8 sequences", 1 << 30, rows / block / mostSequences, 0}, {"10 sequences", 1 << 30, rows / block / 10, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := NewMemoryBuilder(columnsNamed(2), Rules{}, BuilderOptions{Folder: t.TempDir(), Memory: c.memory})
			require.NoError(t, err)
			blocks := rows / block
			for i := range blocks {
				at := i
				if c.step > 1 { // the first block of each sequence, then the second ...
					sequences := blocks / c.step
					at = i%sequences*c.step + i/sequences
				}
				for column := range ids {
					require.NoError(t, m.Add(column, uint64(at*block), ids[column][at*block:][:block], nil))
				}
				if c.builders == 0 {
					require.Positive(t, m.held.Load()+m.bytes.Load())
				}
			}
			moved := 0
			for i := range m.tables {
				if m.tables[i].inBuilder {
					moved++
					assert.Nil(t, m.tables[i].sequences)
				}
			}
			if c.builders >= 0 {
				assert.Equal(t, c.builders, moved)
			} else {
				assert.Positive(t, moved)
			}
			if moved == 2 {
				assert.Zero(t, m.bytes.Load())
			}
			got, err := m.Vocabulary()
			require.NoError(t, err)
			require.NoError(t, m.Close())
			requireSame(t, want, got)
		})
	}
}

// TestVocabulariesInMemoryOfMiniBatches adds mini-batches with lists, and refuses what a Builder refuses.
func TestVocabulariesInMemoryOfMiniBatches(t *testing.T) {
	columns := []testColumn{{{3, 3, -4}, {}, {9}}, {{9}, {3}, {9}}}
	want := written(t, columns, Rules{}, t.TempDir())
	m, err := NewMemoryBuilder(columnsNamed(2), Rules{}, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	assert.Zero(t, m.Keys())
	require.NoError(t, m.AddMiniBatch(0, batchOf(t, tensor.Int64, columns)))
	assert.EqualValues(t, 3+2, m.Keys())
	m.short.Store(true)
	require.NoError(t, m.Add(0, 3, []int64{9}, nil))
	assert.EqualValues(t, 3+2, m.Keys(), "the key 9 is held")
	got, err := m.Vocabulary()
	require.NoError(t, err)
	requireSame(t, want, got)
	require.NoError(t, m.Close())

	m, err = NewMemoryBuilder(columnsNamed(2), Rules{}, BuilderOptions{})
	require.NoError(t, err)
	assert.ErrorContains(t, m.AddMiniBatch(0, batchOf(t, tensor.Int64, columns[:1])), "for 2 columns")
	assert.ErrorContains(t, m.Add(2, 0, nil, nil), "column 2 of 2")
	assert.ErrorContains(t, m.Add(0, 0, []int64{1}, []int32{2}), "1 are left")
	assert.ErrorContains(t, m.Add(0, 0, []int64{1, 2}, []int32{-1}), "a row of -1 ids")
	assert.ErrorContains(t, m.Add(0, 0, []int64{1, 2}, []int32{1}), "1 ids of no row")
	var tooFar *RangeError
	require.ErrorAs(t, m.Add(0, MaxRows, []int64{1}, nil), &tooFar)
	require.NoError(t, m.Add(0, MaxRows-1, []int64{1}, nil))
	none, err := m.Vocabulary()
	require.NoError(t, err)
	assert.Equal(t, []int64{1}, none.Tables[0])
	assert.Empty(t, none.Tables[1])
	require.NoError(t, m.Close())

	_, err = NewMemoryBuilder(nil, Rules{}, BuilderOptions{})
	require.ErrorIs(t, err, ErrRules)
}

// TestHeldKeys checks which keys wait for the end of the pass: those of 32 bits, one a row, in few sequences, and as
// long as half of the memory holds them.
func TestHeldKeys(t *testing.T) {
	const most = 4 << 20 / 2 / 4       // keys of 32 bits in 4 MiB of memory
	const mostNarrow = 4 << 20 / 2 / 2 // of 16 bits
	heldBlock := heldBlockKeys[uint32]()
	sequence := func(n int, last int64) []int64 {
		keys := make([]int64, n)
		for i := range keys {
			keys[i] = int64(i % 1000)
		}
		keys[n-1] = last
		return keys
	}
	rowsOf := func(n, each int) []int32 { return slices.Repeat([]int32{int32(each)}, n) }
	for _, c := range []struct {
		name    string
		ids     []int64
		lengths []int32
		held    bool
	}{
		{"a block and a key", sequence(heldBlock+1, math.MaxUint32), nil, true},
		{"a key of more bits", sequence(heldBlock+1, math.MaxUint32+1), nil, false},
		{"a negative key", sequence(3, -1), nil, false},
		{"lengths", sequence(3, 5), rowsOf(3, 1), false},
		{"as much as memory holds", sequence(most, math.MaxUint16+1), nil, true},
		{"more than memory holds", sequence(most+1, math.MaxUint16+1), nil, false},
		{"as much of 16 bits as memory holds", sequence(mostNarrow, math.MaxUint16), nil, true},
		{"more of 16 bits than memory holds", sequence(mostNarrow+1, math.MaxUint16), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			column := scalars(sequence(mostNarrow+4, 3)...)[:0]
			m, err := NewMemoryBuilder(columnsNamed(1), Rules{}, BuilderOptions{Folder: t.TempDir(), Memory: 4 << 20})
			require.NoError(t, err)
			row := uint64(0)
			for _, part := range [][]int64{c.ids, {1, 2, 3}} {
				lengths := c.lengths
				if len(part) != len(lengths) {
					lengths = nil
				}
				require.NoError(t, m.Add(0, row, part, lengths))
				row += uint64(len(part))
				column = append(column, scalars(part...)...)
				if row == uint64(len(c.ids)) {
					assert.Equal(t, c.held, len(m.tables[0].sequences) == 0 && !m.tables[0].inBuilder)
				}
			}
			m.KeepIDs([]PartitionRows{{Name: "a", Rows: int64(row)}})
			got, err := m.Vocabulary()
			require.NoError(t, err)
			requireSame(t, written(t, []testColumn{column}, Rules{}, t.TempDir()), got)
			assert.Equal(t, c.held && len(c.ids) != most && len(c.ids) != mostNarrow, got.kept != nil)
			if !c.held {
				assert.Zero(t, m.held.Load())
			}
			require.NoError(t, m.Close())
		})
	}
}

// TestKeptIDs applies a vocabulary to the rows that it was built of. The ids are those that lookups give, for mini-
// batches that cross blocks and sequences, and of keys beside them that have lookups, or none.
func TestKeptIDs(t *testing.T) {
	heldBlock := heldBlockKeys[uint32]()
	rows := 2*heldBlock + 100
	random := rand.New(rand.NewPCG(3, 4))
	keys := make([][]int64, 3)
	for i := range keys {
		keys[i] = make([]int64, rows)
		for row := range keys[i] {
			keys[i][row] = random.Int64N(1 << (12 + 8*i))
		}
	}
	rules := Rules{Base: 5}
	m, err := NewMemoryBuilder(columnsNamed(3), rules, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	for _, part := range [][2]int{{heldBlock + 7, rows}, {0, heldBlock + 7}} { // two sequences, the later first
		for i := range keys {
			require.NoError(t, m.Add(i, uint64(part[0]), keys[i][part[0]:part[1]], nil))
		}
	}
	partitions := []PartitionRows{{Name: "a", Digest: [32]byte{1}, Rows: 100}, {Name: "none"},
		{Name: "b", Digest: [32]byte{2}, Rows: int64(rows - 100)}}
	m.KeepIDs(partitions)
	v, err := m.Vocabulary()
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NotNil(t, v.kept)
	var lookups []*Lookup
	for i := range keys {
		l, err := v.Lookup(columnsNamed(3)[i], UnknownFail, false)
		require.NoError(t, err)
		require.True(t, l.Kept())
		lookups = append(lookups, l)
	}
	for _, ids := range []tensor.DType{tensor.Int32, tensor.Int64} {
		schema := &tensor.Schema{Label: true, IDs: ids,
			Keys: []tensor.Key{{Name: "c0"}, {Name: "c1"}, {Name: "c2"}, {Name: "as it is"}}}
		made := *schema
		made.IDs = tensor.Int64
		wanted, err := NewApplier(&made, schema, []*Lookup{lookups[0].WithoutKept(), lookups[1].WithoutKept(),
			lookups[2].WithoutKept(), nil})
		require.NoError(t, err)
		less := made
		less.Keys = made.Keys[2:]
		applier, err := NewApplier(&less, schema, []*Lookup{lookups[0], lookups[1], lookups[2].WithoutKept(), nil})
		require.NoError(t, err)
		for _, c := range []struct {
			at   Rows
			row  int
			rows int
		}{
			{Rows{"a", [32]byte{1}, 0}, 0, 100}, {Rows{"b", [32]byte{2}, 0}, 100, rows - 100},
			{Rows{"b", [32]byte{2}, int64(heldBlock - 101)}, heldBlock - 1, 10}, {Rows{"b", [32]byte{2}, 5}, 105, 1},
		} {
			batchOf := func(schema *tensor.Schema, columns ...[]int64) *tensor.MiniBatch {
				mb := tensor.New(schema, c.rows, func() {})
				mb.Label = make([]float32, c.rows)
				for _, column := range columns {
					mb.Values64 = append(mb.Values64, column[c.row:][:c.rows]...)
				}
				return mb
			}
			want, err := wanted.Apply(batchOf(&made, keys[0], keys[1], keys[2], keys[0]), Rows{})
			require.NoError(t, err)
			got, err := applier.Apply(batchOf(&less, keys[2], keys[0]), c.at)
			require.NoError(t, err)
			require.Empty(t, tensor.Diff(want, got))
			got.Release()
		}
		for _, at := range []Rows{{"c", [32]byte{1}, 0}, {"a", [32]byte{2}, 0}, {"a", [32]byte{1}, 96},
			{"a", [32]byte{1}, -1}, {"a", [32]byte{1}, math.MaxInt64}} {
			mb := tensor.New(&less, 5, nil)
			mb.Values64 = make([]int64, 10)
			_, err := applier.Apply(mb, at)
			require.ErrorIs(t, err, ErrNotKept)
		}
		_, err = NewApplier(&made, schema, []*Lookup{lookups[0], nil, nil, nil})
		require.ErrorIs(t, err, tensor.ErrShape, "a kept key that is made as well")
		list := *schema
		list.Keys = []tensor.Key{{Name: "c0"}, {Name: "list", List: true}}
		_, err = NewApplier(&tensor.Schema{IDs: tensor.Int64, Keys: list.Keys[1:]}, &list, []*Lookup{lookups[0], nil})
		require.ErrorIs(t, err, tensor.ErrShape)
	}
	for _, others := range [][]PartitionRows{nil, partitions[:1], append(partitions, PartitionRows{Name: "d", Rows: 1})} {
		assert.Nil(t, newKeptIDs(v.kept.columns, others))
	}
}

// TestHeldKeysWiden has a key of more than 16 bits come at several places of a column: the keys before it are held in
// 32 bits then. A column of which no key has more stays as it is.
func TestHeldKeysWiden(t *testing.T) {
	rows := 2*heldBlockKeys[uint16]() + 300
	for _, c := range []struct {
		name string
		at   int // row of the greatest key
		key  int64
	}{
		{"16 bits", rows - 1, math.MaxUint16}, {"at first", 0, math.MaxUint16 + 1}, {"at last", rows - 1, math.MaxUint16 + 1},
		{"in the first block", 200, math.MaxUint32}, {"in the second block", heldBlockKeys[uint16]() + 5, 1 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := make([]int64, rows)
			for i := range keys {
				keys[i] = int64(i*7919) % (math.MaxUint16 + 1)
			}
			keys[c.at] = c.key
			m, err := NewMemoryBuilder(columnsNamed(1), Rules{}, BuilderOptions{Folder: t.TempDir()})
			require.NoError(t, err)
			require.NotNil(t, m.memory)
			const step, later = 100, 1000 // two sequences, the later first
			for _, part := range [][2]int{{later, rows}, {0, later}} {
				for begin := part[0]; begin < part[1]; begin += step {
					end := min(begin+step, part[1])
					require.NoError(t, m.Add(0, uint64(begin), keys[begin:end], nil))
				}
			}
			require.Equal(t, c.key > math.MaxUint16, m.tables[0].held.isWide)
			require.Equal(t, m.tables[0].held.memoryBytes(), m.held.Load())
			require.EqualValues(t, rows, m.tables[0].held.keys)
			got, err := m.Vocabulary()
			require.NoError(t, err)
			requireSame(t, written(t, []testColumn{scalars(keys...)}, Rules{}, t.TempDir()), got)
			require.NoError(t, m.Close())
		})
	}
}

// TestKeysThatAnEncoderDoesNotTake checks the most keys of a column that is held.
func TestKeysThatAnEncoderDoesNotTake(t *testing.T) {
	h := heldColumn{keys: unit.MaxColumn - 3}
	for _, c := range []struct {
		first uint64
		keys  []int64
		held  bool
	}{{0, []int64{1, 2}, true}, {2, []int64{3, 4}, false}, {2, []int64{3}, true}, {3, []int64{4}, false}} {
		_, held := h.holdKeys(nil, c.first, c.keys)
		require.Equal(t, c.held, held)
	}
}

// TestHeldKeysBesideGenerators checks that a quarter of the memory holds keys once a generator has some of it.
func TestHeldKeysBesideGenerators(t *testing.T) {
	const most = 4 << 20 / 4 / 2 // keys of 16 bits in 4 MiB of memory
	for _, more := range []int{0, 1} {
		m, err := NewMemoryBuilder(columnsNamed(2), Rules{}, BuilderOptions{Folder: t.TempDir(), Memory: 4 << 20})
		require.NoError(t, err)
		require.NoError(t, m.Add(1, 0, []int64{1, 2}, []int32{2, 0})) // keys with lengths are not held
		require.Positive(t, m.bytes.Load())
		require.NoError(t, m.Add(0, 0, make([]int64, most+more), nil))
		require.Equal(t, more == 0, len(m.tables[0].sequences) == 0)
		require.EqualValues(t, (1-more)*most*2, m.held.Load())
		require.NoError(t, m.Close())
	}
}

// TestBlocksOfHeldMemory checks that blocks of one piece and of the next one do not overlap, and that memory for few
// keys has no pieces.
func TestBlocksOfHeldMemory(t *testing.T) {
	require.Nil(t, newHeldMemory(4*hugepages.Least-1))
	m := newHeldMemory(4 * hugepages.Least)
	require.NotNil(t, m)
	wide, narrow := heldBlockKeys[uint32](), heldBlockKeys[uint16]()
	var blocks [][]uint32
	for i := range 2*hugepages.Least/heldBlockBytes + 1 {
		block := newHeldBlock[uint32](m)
		require.Empty(t, block)
		require.Equal(t, wide, cap(block), "an appended key must not reach the next block")
		block = block[:wide]
		block[0], block[wide-1] = uint32(i), uint32(i)
		blocks = append(blocks, block)
	}
	for i, block := range blocks {
		require.Equal(t, uint32(i), block[0])
		require.Equal(t, uint32(i), block[wide-1])
	}
	returnBlock(m, blocks[1])
	returnBlock(m, blocks[2])
	returnBlock(m, make([]uint32, 7, wide-1)) // a first block, which is as large as its keys wanted
	again := newHeldBlock[uint32](m)
	require.Empty(t, again)
	require.Same(t, &blocks[2][0], &again[:1][0])
	half := newHeldBlock[uint16](m) // the same memory, for twice as many keys
	require.Empty(t, half)
	require.Equal(t, narrow, cap(half))
	half[:narrow][narrow-1] = 7
	require.Equal(t, uint32(7<<16|1), blocks[1][wide-1])
	require.NotSame(t, &blocks[1][0], &newHeldBlock[uint32](m)[:1][0])
	require.Equal(t, wide, cap(newHeldBlock[uint32](nil)))
}
