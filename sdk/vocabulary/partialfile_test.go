package vocabulary

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/tensor"
)

// randomColumns draws n columns of rows ids each, some of them lists, from few keys and many.
func randomColumns(random *rand.Rand, n, rows int) []testColumn {
	columns := make([]testColumn, n)
	for i := range columns {
		for range rows {
			ids := []int64{random.Int64N(50) - 5, random.Int64N(1 << 50)}
			columns[i] = append(columns[i], ids[:random.IntN(3)*(i%2)+(1-i%2)])
		}
	}
	return columns
}

// rowsOf returns consecutive rows of columns.
func rowsOf(columns []testColumn, from, to int) []testColumn {
	part := make([]testColumn, len(columns))
	for i := range columns {
		part[i] = columns[i][from:to]
	}
	return part
}

// fileBytes returns the bytes of a vocabulary and its sidecar, which a builder makes.
func fileBytes(t require.TestingT, b *Builder, folder string) []byte {
	path := filepath.Join(folder, "made.vocab")
	_, err := b.Finish(path)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	var all []byte
	for _, name := range []string{path, path + CountsSuffix} {
		file, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, file...)
		require.NoError(t, os.Remove(name))
	}
	return all
}

// TestPartsMakeTheSameFile cuts a pass into parts that builders of their own write, in any order, merges some of the
// files, and makes the vocabulary of them: the bytes are those of one builder.
func TestPartsMakeTheSameFile(t *testing.T) {
	folder := t.TempDir()
	made := 0
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rules := rapid.SampledFrom([]Rules{{}, {Order: ByCount, Base: 3, MinCount: 2}, {Joint: true, MaxSize: 20},
			{Order: ByCountText, Joint: true}}).Draw(t, "rules")
		columns := columnsNamed(rapid.IntRange(1, 4).Draw(t, "columns"))
		const rows = 400
		data := randomColumns(random, len(columns), rows)
		newBuilder := func() *Builder {
			b, err := NewBuilder(columns, rules, BuilderOptions{Folder: folder})
			require.NoError(t, err)
			return b
		}
		add := func(b *Builder, from, to int) {
			require.NoError(t, b.AddMiniBatch(uint64(from), batchOf(t, tensor.Int64, rowsOf(data, from, to))))
		}
		whole := newBuilder()
		add(whole, 0, rows)
		want := fileBytes(t, whole, folder)

		var files []*Counts
		b := newBuilder()
		length := rapid.IntRange(100, rows).Draw(t, "rows of a part")
		for _, i := range random.Perm((rows + length - 1) / length) {
			from, to := i*length, min((i+1)*length, rows)
			middle := (from + to) / 2
			if middle < to {
				add(b, middle, to)
			}
			if from < middle {
				add(b, from, middle)
			}
			made++
			p, err := b.WritePartial(filepath.Join(folder, fmt.Sprintf("part-%d", made)))
			require.NoError(t, err)
			require.False(t, b.Spilled())
			if rapid.Bool().Draw(t, "another process") {
				require.NoError(t, b.Close())
				b = newBuilder()
				p, err = OpenPartial(p.Path)
				require.NoError(t, err)
			}
			files = append(files, p)
		}
		if n := len(files); n > 2 && rapid.Bool().Draw(t, "merge") {
			made++
			p, err := MergePartials(filepath.Join(folder, fmt.Sprintf("part-%d", made)), files[:n-1]...)
			require.NoError(t, err)
			files = []*Counts{p, files[n-1]}
		}
		for _, p := range files {
			require.NoError(t, b.Take(p))
		}
		require.Equal(t, want, fileBytes(t, b, folder))
	})
}

// TestPartsOfAnExtension: the parts of a pass that extends a vocabulary make the same file as one builder.
func TestPartsOfAnExtension(t *testing.T) {
	folder := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	columns := columnsNamed(3)
	first, more := randomColumns(random, 3, 300), randomColumns(random, 3, 200)
	b, err := NewBuilder(columns, Rules{MinCount: 2, Base: 1}, BuilderOptions{Folder: folder})
	require.NoError(t, err)
	require.NoError(t, b.AddMiniBatch(0, batchOf(t, tensor.Int64, first)))
	before := finish(t, b, filepath.Join(folder, "before.vocab"))
	extend := func() *Builder {
		counts, err := OpenCounts(filepath.Join(folder, "before.vocab"), before.Digest)
		require.NoError(t, err)
		b, err := Extend(before, counts, columns, BuilderOptions{Folder: folder})
		require.NoError(t, err)
		return b
	}
	whole := extend()
	require.NoError(t, whole.AddMiniBatch(0, batchOf(t, tensor.Int64, more)))
	want := fileBytes(t, whole, folder)
	var files []*Counts
	for i, rows := range [][2]int{{120, 200}, {0, 120}} {
		b := extend()
		require.NoError(t, b.AddMiniBatch(uint64(rows[0]), batchOf(t, tensor.Int64, rowsOf(more, rows[0], rows[1]))))
		p, err := b.WritePartial(filepath.Join(folder, fmt.Sprint("part-", i)))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		files = append(files, p)
	}
	last := extend()
	for _, p := range files {
		require.NoError(t, last.Take(p))
	}
	assert.Equal(t, want, fileBytes(t, last, folder))
}

// TestMorePartsThanAreMergedAtOnce: a builder takes more files than it merges at once, and leaves them as they are.
func TestMorePartsThanAreMergedAtOnce(t *testing.T) {
	folder := t.TempDir()
	columns := columnsNamed(1)
	newBuilder := func() *Builder {
		b, err := NewBuilder(columns, Rules{}, BuilderOptions{Folder: folder})
		require.NoError(t, err)
		return b
	}
	whole, last := newBuilder(), newBuilder()
	var files []*Counts
	for i := range 2*MaxPartials + 1 {
		b := newBuilder()
		ids := []int64{int64(i / 2), int64(-i)}
		require.NoError(t, whole.Add(0, uint64(2*i), ids, nil))
		require.NoError(t, b.Add(0, uint64(2*i), ids, nil))
		p, err := b.WritePartial(filepath.Join(folder, fmt.Sprint("part-", i)))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		require.NoError(t, last.Take(p))
		files = append(files, p)
	}
	assert.Equal(t, fileBytes(t, whole, folder), fileBytes(t, last, folder))
	for _, p := range files {
		_, err := OpenPartial(p.Path)
		require.NoError(t, err, "it stays")
	}
	_, err := MergePartials(filepath.Join(folder, "all"), files[:MaxPartials]...)
	require.NoError(t, err)
	_, err = MergePartials(filepath.Join(folder, "more"), files[:MaxPartials+1]...)
	require.ErrorContains(t, err, "want 1 to")
	_, err = MergePartials(filepath.Join(folder, "none"))
	require.ErrorContains(t, err, "want 1 to")
}

// TestAPartOfAnotherPass: builders of other rules or columns refuse a file, and merges do.
func TestAPartOfAnotherPass(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, rules Rules, columns []Column) *Counts {
		b, err := NewBuilder(columns, rules, BuilderOptions{Folder: folder})
		require.NoError(t, err)
		require.NoError(t, b.Add(0, 0, []int64{7}, nil))
		p, err := b.WritePartial(filepath.Join(folder, name))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		return p
	}
	a := write("a", Rules{}, columnsNamed(2))
	for _, other := range []*Counts{
		write("rules", Rules{MinCount: 2}, columnsNamed(2)), write("columns", Rules{}, columnsNamed(3)),
	} {
		b, err := NewBuilder(columnsNamed(2), Rules{}, BuilderOptions{Folder: folder})
		require.NoError(t, err)
		require.ErrorIs(t, b.Take(other), ErrOtherBuilder)
		require.NoError(t, b.Take(a))
		require.NoError(t, b.Close())
		_, err = MergePartials(filepath.Join(folder, "m"), a, other)
		require.ErrorIs(t, err, ErrOtherBuilder)
	}
}
