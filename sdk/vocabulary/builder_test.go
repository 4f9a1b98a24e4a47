package vocabulary

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// obvious makes a table's keys as the definition reads, of columns that share the table.
func obvious(rules Rules, columns []testColumn) []int64 {
	type seen struct {
		key   int64
		count uint64
	}
	var list []*seen
	have := map[int64]*seen{}
	for row := range columns[0] {
		for _, c := range columns {
			for _, key := range c[row] {
				if have[key] == nil {
					have[key] = &seen{key: key}
					list = append(list, have[key])
				}
				have[key].count++
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *seen) int {
		switch rules.Order {
		case ByCount:
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
		case ByCountText:
			return cmp.Or(cmp.Compare(b.count, a.count),
				cmp.Compare(strconv.FormatInt(b.key, 10), strconv.FormatInt(a.key, 10)))
		}
		return 0
	})
	keys := []int64{}
	for _, s := range list {
		if s.count >= rules.MinCount && (rules.MaxSize == 0 || uint64(len(keys)) < rules.MaxSize) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// drawRules draws rules without special ids.
func drawRules(t *rapid.T) Rules {
	return Rules{
		Order: rapid.SampledFrom([]Order{FirstSeen, ByCount, ByCountText}).Draw(t, "order"),
		Joint: rapid.Bool().Draw(t, "joint"), Base: rapid.Int64Range(0, 3).Draw(t, "base"),
		MinCount: rapid.Uint64Range(1, 3).Draw(t, "least count"),
		MaxSize:  rapid.SampledFrom([]uint64{0, 0, 1, 7}).Draw(t, "largest size"),
	}
}

// drawColumns draws columns of lists.
func drawColumns(t *rapid.T, n int) []testColumn {
	rows := rapid.IntRange(1, 40).Draw(t, "rows")
	key := rapid.SampledFrom([]int64{0, 1, 2, 3, 5, 10, 100, -1, -10, math.MinInt64, math.MaxInt64, 1 << 40})
	columns := make([]testColumn, n)
	for i := range columns {
		columns[i] = rapid.SliceOfN(rapid.SliceOfN(key, 0, 4), rows, rows).Draw(t, "column")
	}
	return columns
}

// addInPieces folds columns in by pieces of rows, in random order, from goroutines, with random runs on disk.
func addInPieces(t *rapid.T, b *Builder, columns []testColumn) {
	type piece struct{ column, first, end int }
	var pieces []piece
	for i, c := range columns {
		for first := 0; first < len(c); {
			end := min(len(c), first+rapid.IntRange(1, 16).Draw(t, "rows of a piece"))
			pieces = append(pieces, piece{i, first, end})
			first = end
		}
	}
	pieces = rapid.Permutation(pieces).Draw(t, "order of pieces")
	spills := make([]bool, len(pieces))
	for i := range spills {
		spills[i] = rapid.Bool().Draw(t, "spill")
	}
	work := make(chan int)
	var group sync.WaitGroup
	errs := make([]error, len(pieces))
	for range 3 {
		group.Go(func() {
			for i := range work {
				p := pieces[i]
				ids, lengths := columns[p.column][p.first:p.end].flat()
				errs[i] = b.Add(p.column, uint64(p.first), ids, lengths)
				if table := b.tables[b.columns[p.column].Table]; spills[i] && errs[i] == nil {
					table.mu.Lock()
					errs[i] = b.spillTable(table)
					table.mu.Unlock()
				}
			}
		})
	}
	for i := range pieces {
		work <- i
	}
	close(work)
	group.Wait()
	require.NoError(t, errors.Join(errs...))
}

// folder makes a folder that ends with a draw.
func folder(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "millrace-vocabulary-test-*")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestOrderRunsAndThreadsChangeNothing checks keys against the definition, and that both files are the same bytes
// however the pass was carried out.
func TestOrderRunsAndThreadsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, columns := drawRules(t), drawColumns(t, rapid.IntRange(1, 3).Draw(t, "columns"))
		dir := folder(t)
		var files [2][][]byte
		for i := range files {
			b, err := NewBuilder(columnsNamed(len(columns)), rules, BuilderOptions{Folder: dir})
			require.NoError(t, err)
			if i == 0 {
				addAll(t, b, columns)
			} else {
				addInPieces(t, b, columns)
			}
			v := finish(t, b, filepath.Join(dir, "v.vocab"))
			for _, name := range []string{"v.vocab", "v.vocab" + CountsSuffix} {
				bytes, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				files[i] = append(files[i], bytes)
			}
			if rules.Joint {
				assert.Equal(t, obvious(rules, columns), v.Tables[0])
			} else {
				for j := range columns {
					assert.Equal(t, obvious(rules, columns[j:j+1]), v.Tables[j])
				}
			}
		}
		assert.Equal(t, files[0], files[1])
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, left, 2, "runs and partial files are removed")
	})
}

// TestGenerationsCountTogether extends vocabularies: earlier keys keep their ids, and a key counts over all
// generations. Without a largest size and in the order of first appearance, every key of one pass over all the data is
// a key of the last generation.
func TestGenerationsCountTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		columns := drawColumns(t, 2)
		dir := folder(t)
		path := filepath.Join(dir, "v.vocab")
		rows := len(columns[0])
		first := rapid.IntRange(0, rows).Draw(t, "rows of the first generation")
		part := func(begin, end int) []testColumn {
			return []testColumn{columns[0][begin:end], columns[1][begin:end]}
		}
		b, err := NewBuilder(columnsNamed(2), rules, BuilderOptions{Folder: dir})
		require.NoError(t, err)
		addAll(t, b, part(0, first))
		old := finish(t, b, path)

		counts, err := OpenCounts(path, old.Digest)
		require.NoError(t, err)
		b, err = Extend(old, counts, columnsNamed(2), BuilderOptions{Folder: dir})
		require.NoError(t, err)
		addInPieces(t, b, part(first, rows))
		extended := finish(t, b, path)

		whole := rules
		whole.MaxSize, whole.Order = 0, FirstSeen
		for i, keys := range extended.Tables {
			before := old.Tables[i]
			require.Equal(t, before, keys[:len(before)])
			all := columns[i : i+1]
			if rules.Joint {
				all = columns
			}
			kept := obvious(whole, all)
			if rules.MaxSize == 0 {
				assert.ElementsMatch(t, kept, keys)
			} else {
				assert.Len(t, keys, min(len(kept), int(rules.MaxSize)))
			}
			if rules.Order == FirstSeen && rules.MinCount == 1 && rules.MaxSize == 0 {
				assert.Equal(t, kept, keys)
			}
		}
		// The sidecar is that of one pass over all the data, but for the vocabulary that it names.
		b, err = NewBuilder(columnsNamed(2), rules, BuilderOptions{Folder: dir})
		require.NoError(t, err)
		addAll(t, b, columns)
		once := filepath.Join(dir, "once.vocab")
		finish(t, b, once)
		if rows > first && first > 0 {
			assert.Equal(t, entriesIn(t, once), entriesIn(t, path))
		}
	})
}

// entriesIn returns the bytes of a sidecar that are entries and sizes.
func entriesIn(t require.TestingT, path string) []byte {
	b, err := os.ReadFile(path + CountsSuffix)
	require.NoError(t, err)
	return b[:len(b)-countsTrailer]
}

// TestMemoryIsBounded builds a table of more keys than fit into the least memory, in the order of their counts, with
// more runs than are merged at once.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	b, err := NewBuilder(columnsNamed(1), Rules{Order: ByCount}, BuilderOptions{Folder: dir, Memory: 1})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 4))
	var column []int64
	const rows, block = 260_000, 1000
	for first := 0; first < rows; first += block {
		ids := make([]int64, block)
		for i := range ids {
			ids[i] = random.Int64N(200_000) << 20
		}
		column = append(column, ids...)
		require.NoError(t, b.Add(0, uint64(first), ids, nil))
		require.LessOrEqual(t, b.hashed.Load(), b.mostHashed()+block)
		require.EqualValues(t, b.tables[0].seen.Hashed(), b.hashed.Load())
	}
	runs, err := filepath.Glob(filepath.Join(dir, "millrace-*", "runs-*", "run-*"))
	require.NoError(t, err)
	require.Greater(t, len(runs), occurrence.MaxOpenRuns)
	v := finish(t, b, filepath.Join(dir, "v.vocab"))
	assert.Equal(t, obvious(Rules{Order: ByCount, MinCount: 1}, []testColumn{scalars(column...)}), v.Tables[0])
	left, err := filepath.Glob(filepath.Join(dir, "millrace-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestKeysSoFar counts keys of arrays and of hash tables, and those of runs once for each run.
func TestKeysSoFar(t *testing.T) {
	b, err := NewBuilder(columnsNamed(2), Rules{}, BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	addAll(t, b, []testColumn{scalars(1, 2, 1, -5, 1<<40), scalars(7, 7, 7, 7, 7)})
	assert.EqualValues(t, 5, b.Keys())
	require.NoError(t, b.Add(0, 5, []int64{1, 2, 3, -6}, nil))
	assert.EqualValues(t, 7, b.Keys())
	require.NoError(t, b.spillTable(b.tables[0]))
	require.NoError(t, b.Add(0, 9, []int64{1 << 40, -5, 1 << 41}, nil))
	assert.EqualValues(t, 8+2, b.Keys(), "two keys of the run came again")
	require.NoError(t, b.Close())
}

// TestRunsThatChangeAreFound flips a bit of a run on disk.
func TestRunsThatChangeAreFound(t *testing.T) {
	dir := t.TempDir()
	b, err := NewBuilder(columnsNamed(1), Rules{}, BuilderOptions{Folder: dir})
	require.NoError(t, err)
	addAll(t, b, []testColumn{scalars(3<<30, 1<<30, 2<<30)})
	require.NoError(t, b.spillTable(b.tables[0]))
	runs, err := filepath.Glob(filepath.Join(dir, "millrace-*", "runs-*", "run-*"))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	bytes, err := os.ReadFile(runs[0])
	require.NoError(t, err)
	bytes[17] ^= 1
	require.NoError(t, os.WriteFile(runs[0], bytes, 0o600))
	path := filepath.Join(t.TempDir(), "v.vocab")
	_, err = b.Finish(path)
	assert.ErrorContains(t, err, "changed on disk")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Empty(t, left, "a build that fails leaves no file")
	require.NoError(t, b.Close())
}

// TestLimitsOfPositions checks the rows and the lengths of lists from both sides.
func TestLimitsOfPositions(t *testing.T) {
	b, err := NewBuilder(columnsNamed(3), Rules{Joint: true}, BuilderOptions{})
	require.NoError(t, err)
	require.NoError(t, b.Add(0, MaxRows-1, []int64{1}, nil))
	var wrong *RangeError
	require.ErrorAs(t, b.Add(0, MaxRows, []int64{1}, nil), &wrong)
	require.ErrorAs(t, b.Add(0, math.MaxUint64, []int64{1}, nil), &wrong)
	longest := make([]int64, 1<<22) // two bits of 24 tell three columns apart
	require.NoError(t, b.Add(1, 0, longest, []int32{int32(len(longest))}))
	require.ErrorAs(t, b.Add(1, 0, append(longest, 0), []int32{int32(len(longest)) + 1}), &wrong)
	assert.ErrorContains(t, b.Add(1, 0, longest[:3], []int32{1, 1}), "1 ids of no row")
	assert.ErrorContains(t, b.Add(1, 0, longest[:3], []int32{1, 3}), "2 are left")
	assert.ErrorContains(t, b.Add(1, 0, longest[:3], []int32{-1}), "a row of -1 ids")
	assert.ErrorContains(t, b.Add(3, 0, nil, nil), "column 3 of 3")
}

// TestRulesThatCannotHold checks every refusal of rules.
func TestRulesThatCannotHold(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules Rules
		want  string
	}{
		{"order", Rules{Order: 9}, "order(9)"},
		{"negative base", Rules{Base: -1}, "base -1"},
		{"base", Rules{Base: MaxBase + 1}, "base"},
		{"buckets", Rules{Base: 3, Buckets: 4}, "4 oov_buckets and base 3"},
		{"null id among keys", Rules{Base: 3, Null: SomeID(3)}, "null_id 3, want -2147483648 to 2"},
		{"rare id among keys", Rules{Rare: SomeID(0)}, "rare_id 0"},
		{"null id in a bucket", Rules{Base: 3, Buckets: 2, Null: SomeID(1)}, "null_id 1 is one of the 2 oov_buckets"},
		{"rare id too small", Rules{Rare: SomeID(LeastID - 1)}, "rare_id"},
		{"id without being given", Rules{Null: OptionalID{ID: 1}, Base: 2}, "not given"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewBuilder(columnsNamed(1), c.rules, BuilderOptions{})
			require.ErrorIs(t, err, ErrRules)
			assert.ErrorContains(t, err, c.want)
		})
	}
	for _, rules := range []Rules{
		{Base: MaxBase}, {Base: 4, Buckets: 4}, {Base: 4, Buckets: 2, Null: SomeID(1)}, {Rare: SomeID(LeastID)},
	} {
		_, err := NewBuilder(columnsNamed(1), rules, BuilderOptions{})
		assert.NoError(t, err)
	}
	for _, columns := range [][]Column{nil, {{Name: "a"}, {Name: "a"}}, {{Name: ""}},
		{{Name: string(bytes.Repeat([]byte{'a'}, MaxNameBytes+1))}}, {{Name: "\xff"}}} {
		_, err := NewBuilder(columns, Rules{}, BuilderOptions{})
		assert.ErrorIs(t, err, ErrRules)
	}
}
