package tensor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// joinSchemas returns one schema of each kind, those with sets of keys included.
func joinSchemas() map[string]*Schema {
	all := schemas()
	for name, s := range setSchemas() {
		all["sets, "+name] = s
	}
	return all
}

// fragmentsOf cuts a mini-batch into fragments. sizes are the rows of each fragment.
func fragmentsOf(t require.TestingT, m *MiniBatch, sizes []int) (parts []*MiniBatch) {
	offsets := m.Offsets(nil)
	first := 0
	for i, n := range sizes {
		rows := make([]rowRef, n)
		for r := range rows {
			rows[r].row = first + r
		}
		p, err := gatherOne([]*MiniBatch{m}, [][]int64{offsets}, rows)
		require.NoError(t, err)
		p.Name, p.Fragment = m.Name, Fragment{Index: i, Of: len(sizes)}
		parts = append(parts, p)
		first += n
	}
	return parts
}

func TestJoinIsTheRowByRowJoin(t *testing.T) {
	for name, s := range joinSchemas() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				sizes := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 5).Draw(rt, "rows")
				rows := 0
				for _, n := range sizes {
					rows += n
				}
				draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "value") }
				whole := repetitive(rt, s, rows, draw)
				parts := fragmentsOf(rt, whole, sizes)
				var want []row
				for _, p := range parts {
					want = append(want, rowsOf(p)...)
				}

				joined, err := new(Memory).Join(parts)
				require.NoError(rt, err)
				require.NoError(rt, joined.Validate())
				for _, p := range parts {
					same, err := p.Deduplicate()
					require.NoError(rt, err)
					require.Same(rt, p, same, "a fragment is deduplicated when it is joined")
				}
				require.Zero(rt, joined.Fragment)
				require.False(rt, joined.Lent())
				require.Equal(rt, s.Sets() > 0, joined.Unique != nil)
				deduplicated, err := whole.Clone().Deduplicate()
				require.NoError(rt, err)
				require.Empty(rt, Diff(deduplicated, joined))
				expanded, err := joined.Expand()
				require.NoError(rt, err)
				require.Equal(rt, len(want), expanded.Rows)
				for r, got := range rowsOf(expanded) {
					require.Equal(rt, fmt.Sprint(want[r]), fmt.Sprint(got), "row %d", r)
				}
			})
		})
	}
}

func TestAJoinedMiniBatchHasMemoryOfItsOwn(t *testing.T) {
	for name, s := range joinSchemas() {
		t.Run(name, func(t *testing.T) {
			whole := random(t, s, 5, 1)
			parts := fragmentsOf(t, whole, []int{2, 3})
			joined, err := new(Memory).Join(parts)
			require.NoError(t, err)
			want := joined.Clone()
			for _, p := range parts {
				for _, tensor := range [][]float32{p.Label, p.Dense, p.Weights} {
					clear(tensor)
				}
				clear(p.Dense16)
				clear(p.Values32)
				clear(p.Values64)
				clear(p.Lengths)
				p.Release()
			}
			assert.Empty(t, Diff(want, joined))
			joined.Release()
		})
	}
}

// TestMemoryIsUsedAgain joins mini-batches of any sizes one after the other, of which some are kept: those stay as they
// are.
func TestMemoryIsUsedAgain(t *testing.T) {
	for name, s := range joinSchemas() {
		var memory Memory
		var kept, want []*MiniBatch
		for i, rows := range []int{9, 4, 17, 2, 9, 30, 5, 3} {
			whole := random(t, s, rows, uint64(i))
			joined, err := memory.Join(fragmentsOf(t, whole, []int{1, rows - 1}))
			require.NoError(t, err)
			whole, err = whole.Deduplicate()
			require.NoError(t, err)
			require.Empty(t, Diff(whole, joined), name)
			if i%3 == 0 {
				kept, want = append(kept, joined), append(want, whole)
			} else {
				joined.Release()
			}
		}
		for i := range kept {
			require.Empty(t, Diff(want[i], kept[i]), name)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	s := schemas()["lists int64"]
	for name, c := range map[string]struct {
		spoil func(parts []*MiniBatch) []*MiniBatch
		want  string
	}{
		"nothing":        {func([]*MiniBatch) []*MiniBatch { return nil }, "no fragment to join"},
		"the first left": {func(p []*MiniBatch) []*MiniBatch { return p[1:] }, "it is fragment 1/3, want 0/2"},
		"a middle one": {func(p []*MiniBatch) []*MiniBatch { return append(p[:1:1], p[2]) },
			"it is fragment 0/3, want 0/2"},
		"the last left": {func(p []*MiniBatch) []*MiniBatch { return p[:2] }, "it is fragment 0/3, want 0/2"},
		"one twice": {func(p []*MiniBatch) []*MiniBatch { return append(p[:2:2], p[1:]...) },
			"it is fragment 0/3, want 0/4"},
		"another order": {func(p []*MiniBatch) []*MiniBatch { return []*MiniBatch{p[0], p[2], p[1]} },
			"it is fragment 2/3, want 1/3"},
		"another name":   {spoilPart(func(p *MiniBatch) { p.Name.Number++ }), "it is of mini-batch"},
		"another whole":  {spoilPart(func(p *MiniBatch) { p.Fragment.Of++ }), "it is fragment 1/4, want 1/3"},
		"no mark":        {spoilAll(func(p *MiniBatch) { p.Fragment = Fragment{} }), "it is fragment 0/0, want 0/3"},
		"a wrong length": {spoilPart(func(p *MiniBatch) { p.Lengths[0]++ }), "the lengths sum to"},
		"another schema": {spoilPart(func(p *MiniBatch) { p.Schema = schemas()["lists int32"] }),
			"it has another schema: a label"},
		"deduplicated":    {spoilPart(func(p *MiniBatch) { p.Unique = []int32{1} }), "deduplicated: join first"},
		"a negative row":  {spoilPart(func(p *MiniBatch) { p.Rows = -1 }), "-1 rows"},
		"bad at the last": {spoilPart(func(p *MiniBatch) { p.Values64 = nil }), "there are 0 values"},
	} {
		t.Run(name, func(t *testing.T) {
			parts := c.spoil(fragmentsOf(t, random(t, s, 9, 1), []int{2, 3, 4}))
			_, err := new(Memory).Join(parts)
			require.ErrorIs(t, err, ErrShape)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// spoilAll changes every part.
func spoilAll(change func(*MiniBatch)) func([]*MiniBatch) []*MiniBatch {
	return func(parts []*MiniBatch) []*MiniBatch {
		for _, p := range parts {
			change(p)
		}
		return parts
	}
}

// spoilPart changes the second part.
func spoilPart(change func(*MiniBatch)) func([]*MiniBatch) []*MiniBatch {
	return func(parts []*MiniBatch) []*MiniBatch {
		change(parts[1])
		return parts
	}
}

func BenchmarkJoin(b *testing.B) {
	keys := make([]Key, 26)
	for i := range keys {
		keys[i] = Key{Name: fmt.Sprintf("cat_%d", i)}
	}
	dense := make([]string, 13)
	for i := range dense {
		dense[i] = fmt.Sprintf("int_%d", i)
	}
	for name, list := range map[string]bool{"fixed": false, "lists": true} {
		b.Run(name, func(b *testing.B) {
			s := &Schema{Label: true, Dense: dense, Keys: keys, IDs: Int64}
			for i := range keys {
				keys[i].List = list
			}
			whole := random(b, s, 8192, 1)
			parts := fragmentsOf(b, whole, []int{5000, 3192})
			b.SetBytes(whole.Bytes())
			var memory Memory
			for b.Loop() {
				joined, err := memory.Join(parts)
				if err != nil {
					b.Fatal(err)
				}
				joined.Release()
			}
		})
	}
}
