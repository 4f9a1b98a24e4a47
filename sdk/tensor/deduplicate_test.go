package tensor

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// setSchemas are schemas with sets of keys.
func setSchemas() map[string]*Schema {
	return map[string]*Schema{
		"lists": {Label: true, Dense: []string{"x"}, IDs: Int64, Keys: []Key{{Name: "a", List: true, Set: 1},
			{Name: "b", Set: 1}, {Name: "c", List: true}, {Name: "d", List: true, Set: 2}}},
		"fixed":    {Label: true, IDs: Int32, Keys: []Key{{Name: "a"}, {Name: "b", Set: 1}, {Name: "c", Set: 1}}},
		"weighted": {IDs: Int32, Weights: true, Keys: []Key{{Name: "a", List: true, Set: 1}, {Name: "b", List: true}}},
		"narrow": {Dense: []string{"x", "y", "z"}, DenseType: BFloat16, IDs: Int32,
			Keys: []Key{{Name: "a", List: true, Set: 1}}},
	}
}

// repetitive returns a mini-batch of few different lists, not deduplicated.
func repetitive(t require.TestingT, s *Schema, rows int, draw func(n int) int) *MiniBatch {
	lengths := make([]int32, 0, len(s.Keys)*rows)
	var ids []int64
	var weights []float32
	for f := range s.Keys {
		for range rows {
			n := 1
			if s.Keys[f].List {
				n = draw(3)
			}
			lengths = append(lengths, int32(n))
			for range n {
				ids = append(ids, int64(draw(2)))
				weights = append(weights, []float32{0, float32(math.Copysign(0, -1)), 1}[draw(3)])
			}
		}
	}
	m, err := Make(s, rows, len(ids))
	require.NoError(t, err)
	m.Name = Name{Epoch: 1, Number: 7}
	copy(m.Lengths, lengths)
	copy(m.Values64, ids)
	for i := range m.Values32 {
		m.Values32[i] = int32(ids[i])
	}
	copy(m.Weights, weights)
	for i := range m.Dense {
		m.Dense[i] = float32(draw(100))
	}
	for i := range m.Dense16 {
		m.Dense16[i] = uint16(draw(1 << 16))
	}
	for i := range m.Label {
		m.Label[i] = float32(draw(2))
	}
	require.NoError(t, m.Validate())
	return m
}

// referenceOf deduplicates by its definition: rows as text, in the order in which they first appear. It returns for
// each key its rows as text, and for each set the inverse.
func referenceOf(m *MiniBatch) (keys [][]string, inverse [][]int32) {
	rows := rowsOf(m)
	text := func(f, r int) string {
		s := fmt.Sprint(rows[r].ids[f], len(rows[r].ids[f]))
		for _, w := range rows[r].weights[f] {
			s += fmt.Sprintf(" %08x", math.Float32bits(w))
		}
		return s
	}
	inverse = make([][]int32, m.Schema.Sets())
	firsts := make([][]int, m.Schema.Sets())
	for set := range inverse {
		seen := map[string]int32{}
		for r := range m.Rows {
			all := ""
			for f, k := range m.Schema.Keys {
				if k.Set == set+1 {
					all += text(f, r) + ";"
				}
			}
			if _, ok := seen[all]; !ok {
				seen[all] = int32(len(seen))
				firsts[set] = append(firsts[set], r)
			}
			inverse[set] = append(inverse[set], seen[all])
		}
	}
	for f, k := range m.Schema.Keys {
		var of []string
		if k.Set == 0 {
			for r := range m.Rows {
				of = append(of, text(f, r))
			}
		} else {
			for _, r := range firsts[k.Set-1] {
				of = append(of, text(f, r))
			}
		}
		keys = append(keys, of)
	}
	return keys, inverse
}

// keyRows writes a deduplicated mini-batch's rows of each key as referenceOf does.
func keyRows(m *MiniBatch) (keys [][]string) {
	o, at := m.Offsets(nil), 0
	for f := range m.Schema.Keys {
		var of []string
		for r := range m.RowsOfKey(f) {
			lo, hi := o[at+r], o[at+r+1]
			ids := make([]int64, 0, hi-lo)
			weights := ""
			for i := lo; i < hi; i++ {
				if m.Schema.IDs == Int32 {
					ids = append(ids, int64(m.Values32[i]))
				} else {
					ids = append(ids, m.Values64[i])
				}
				if m.Schema.Weights {
					weights += fmt.Sprintf(" %08x", math.Float32bits(m.Weights[i]))
				}
			}
			of = append(of, fmt.Sprint(ids, len(ids))+weights)
		}
		at += m.RowsOfKey(f)
		keys = append(keys, of)
	}
	return keys
}

func TestDeduplicateIsItsDefinition(t *testing.T) {
	for name, s := range setSchemas() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := repetitive(rt, s, rapid.IntRange(0, 40).Draw(rt, "rows"),
					func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "draw") })
				before := m.Clone()
				wantKeys, wantInverse := referenceOf(m)
				d, err := m.Deduplicate()
				require.NoError(rt, err)
				require.NoError(rt, d.Validate())
				require.Empty(rt, Diff(before, m), "the mini-batch that is deduplicated is not written")
				require.Equal(rt, wantKeys, keyRows(d))
				for set, want := range wantInverse {
					require.Equal(rt, want, append([]int32(nil), d.Inverse[set*m.Rows:(set+1)*m.Rows]...))
				}
				again, err := d.Deduplicate()
				require.NoError(rt, err)
				require.Same(rt, d, again)
				require.LessOrEqual(rt, d.Bytes(), m.Bytes()+4*int64(len(d.Inverse)))

				frame, err := AppendFrame(nil, d)
				require.NoError(rt, err)
				read, err := ReadFrame(frame)
				require.NoError(rt, err)
				require.Empty(rt, Diff(d, read))
				read, err = ReadFrameOf(frame, dataSum(frame), m.Name, Fragment{}, s)
				require.NoError(rt, err)
				require.Empty(rt, Diff(d, read))
				back, err := AppendFrame(nil, read)
				require.NoError(rt, err)
				require.Equal(rt, frame, back, "one mini-batch has one frame")

				whole, err := read.Expand()
				require.NoError(rt, err)
				require.Empty(rt, Diff(before, whole))
				same, err := whole.Expand()
				require.NoError(rt, err)
				require.Same(rt, whole, same)
			})
		})
	}
}

func TestDeduplicateTakesTheHoldOver(t *testing.T) {
	s := setSchemas()["fixed"]
	made := repetitive(t, s, 4, func(int) int { return 1 })
	released := 0
	m := New(s, 4, func() { released++ })
	m.Label, m.Values32 = made.Label, made.Values32
	d, err := m.Deduplicate()
	require.NoError(t, err)
	assert.Equal(t, []int32{1}, d.Unique)
	assert.Len(t, d.Values32, 4+1+1)
	e, err := d.Clone().Expand()
	require.NoError(t, err)
	e.Release()
	assert.Zero(t, released)
	assert.True(t, d.Lent())
	d.Release()
	assert.Equal(t, 1, released)

	plain := random(t, schemas()["fixed int32"], 3, 1)
	same, err := plain.Deduplicate()
	require.NoError(t, err)
	assert.Same(t, plain, same, "nothing to do")
}

// formOfSets returns a small deduplicated mini-batch.
func formOfSets(t testing.TB) *MiniBatch {
	m := New(setSchemas()["lists"], 3, nil)
	m.Name = Name{Job: [32]byte{0xab, 31: 0xcd}, Epoch: 1, Number: 5}
	m.Label, m.Dense = []float32{0, 1, 1}, []float32{1, 2, 3}
	m.Lengths = []int32{2, 2, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0}
	m.Values64 = []int64{7, 8, 7, 8, 1, 1, 2, 5, 6}
	d, err := m.Deduplicate()
	require.NoError(t, err)
	return d
}

func TestDeduplicatedFramesThatLie(t *testing.T) {
	good, err := AppendFrame(nil, formOfSets(t))
	require.NoError(t, err)
	for name, c := range map[string]struct{ old, new, says string }{
		"an older format":           {`frame/3`, `frame/1`, `want "millrace.frame/3"`},
		"a set too many":            {`"sets":"[1,1,0,2]"`, `"sets":"[1,1,0,2,3]"`, "4 keys, 5 sets"},
		"a set out of order":        {`"sets":"[1,1,0,2]"`, `"sets":"[2,2,0,1]"`, `key "a" is in set 2, want 0 or 1`},
		"a set in two places":       {`"sets":"[1,1,0,2]"`, `"sets":"[1,1,0,1]"`, `key "d" is in set 1, want 0 or 2`},
		"a negative set":            {`"sets":"[1,1,0,2]"`, `"sets":"[-1,1,0,2]"`, "set -1"},
		"no sets":                   {`"sets":"[1,1,0,2]",`, ``, "format"},
		"unique of one set":         {`"unique":"[2,1]"`, `"unique":"[2]"`, "different rows of 1 sets"},
		"unique that is null":       {`"unique":"[2,1]"`, `"unique":"null"`, "unique is null"},
		"more different than rows":  {`"unique":"[2,1]"`, `"unique":"[4,1]"`, "4 different rows, want 1 to 3"},
		"none different":            {`"unique":"[2,1]"`, `"unique":"[2,0]"`, "0 different rows, want 1 to 3"},
		"beyond int32":              {`"unique":"[2,1]"`, `"unique":"[4294967298,1]"`, "unique"},
		"another number of lengths": {`"unique":"[2,1]"`, `"unique":"[3,1]"`, "kjt.lengths: shape"},
		"the inverse's shape": {`"kjt.inverse":{"dtype":"I32","shape":[2,3]`, `"kjt.inverse":{"dtype":"I32","shape":[3,2]`,
			"kjt.inverse: shape"},
		"the inverse's type": {`"kjt.inverse":{"dtype":"I32"`, `"kjt.inverse":{"dtype":"F32"`,
			"kjt.inverse: dtype"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFrame(reframe(t, good, c.old, c.new))
			require.ErrorIs(t, err, ErrFrame)
			assert.ErrorContains(t, err, c.says)
		})
	}
	for name, c := range map[string]struct {
		change func(m *MiniBatch)
		says   string
	}{
		"an index too large": {func(m *MiniBatch) { m.Inverse[2] = 2 },
			"kjt.inverse of set 1, row 2 is 2, want 0 to 1"},
		"a negative index": {func(m *MiniBatch) { m.Inverse[4] = -1 },
			"kjt.inverse of set 2, row 1 is -1, want 0 to 0"},
		"not as they first appear": {func(m *MiniBatch) { m.Inverse[0], m.Inverse[2] = 1, 0 },
			"row 0 is 1 before a row is 0"},
		"a row that nobody has": {func(m *MiniBatch) { m.Inverse[2] = 0 },
			"set 1 of keys has 2 different rows, kjt.inverse names 1"},
		"lengths that do not sum": {func(m *MiniBatch) { m.Lengths[0]++ },
			"the lengths sum to 7, there are 6 values"},
		"a negative length": {func(m *MiniBatch) { m.Lengths[0], m.Lengths[1] = -1, 3 },
			`key "a", row 0 is -1`},
		"a scalar's length":   {func(m *MiniBatch) { m.Lengths[2] = 2 }, `key "b", row 0 is 2`},
		"no inverse":          {func(m *MiniBatch) { m.Inverse = nil }, "kjt.inverse has 0 elements, want 6"},
		"an inverse, no sets": {func(m *MiniBatch) { m.Unique = nil }, "elements"},
		"unique of no set":    {func(m *MiniBatch) { m.Unique = []int32{} }, "different rows of 0 sets"},
	} {
		t.Run(name, func(t *testing.T) {
			m := formOfSets(t)
			c.change(m)
			err := m.Validate()
			require.ErrorIs(t, err, ErrShape)
			assert.ErrorContains(t, err, c.says)
			if m.Unique != nil {
				_, err = m.Expand()
				require.ErrorIs(t, err, ErrShape)
			}
			// The same in a frame with a correct CRC.
			if e, err := layout(m.Schema, m.Rows, m.Values(), m.Unique, 1); err == nil && m.Unique != nil && m.Inverse != nil {
				var data []byte
				for _, v := range m.views(e) {
					data = append(data, v...)
				}
				subject := frameSubject{m.Name, Fragment{}, m.Schema, m.Rows, m.Values(), m.Unique}
				head := appendHeader(nil, &subject, e, dataSum(append(make([]byte, 8), data...)))
				_, err := ReadFrame(append(head, data...))
				require.ErrorIs(t, err, ErrFrame)
				assert.ErrorContains(t, err, c.says)
			}
		})
	}
	_, err = AppendFrame(nil, repetitive(t, setSchemas()["fixed"], 2, func(int) int { return 0 }))
	require.ErrorContains(t, err, "it is not deduplicated yet")
	_, err = Gather([]*MiniBatch{formOfSets(t)}, []uint32{0, 1, 2})
	require.ErrorContains(t, err, "is deduplicated: gather first")
}

// TestExpandIsBounded expands a frame of some kilobytes, which can stand for more memory than the machine has.
func TestExpandIsBounded(t *testing.T) {
	const rows, long = 1 << 16, 1 << 15
	s := &Schema{IDs: Int64, Keys: []Key{{Name: "a", List: true, Set: 1}}}
	m := New(s, rows, nil)
	m.Unique, m.Inverse = []int32{1}, make([]int32, rows)
	m.Lengths, m.Values64 = []int32{long}, make([]int64, long)
	require.NoError(t, m.Validate())
	_, err := m.Expand()
	require.ErrorIs(t, err, ErrShape)
	require.ErrorContains(t, err, "more than 4294967296 bytes")
	m.Values64, m.Lengths = m.Values64[:2], []int32{2}
	whole, err := m.Expand()
	require.NoError(t, err)
	assert.Len(t, whole.Values64, 2*rows)
}

// TestFoldersHoldEveryRow checks that folders hold every row: a deduplicated mini-batch gives the same files as the
// mini-batch before its deduplication.
func TestFoldersHoldEveryRow(t *testing.T) {
	for name, s := range setSchemas() {
		t.Run(name, func(t *testing.T) {
			draw := func(n int) int { return n / 2 }
			m := repetitive(t, s, 20, draw)
			d, err := repetitive(t, s, 20, draw).Deduplicate()
			require.NoError(t, err)
			contents := func(m *MiniBatch) string {
				dir := t.TempDir() + "/out"
				w, err := CreateNpy(dir, s)
				require.NoError(t, err)
				require.NoError(t, w.Write(m))
				require.NoError(t, w.Close())
				return folderText(t, dir)
			}
			assert.Equal(t, contents(m), contents(d))
		})
	}
}

func BenchmarkDeduplicate(b *testing.B) {
	for _, c := range []struct{ name, different string }{{"all different", "all"}, {"eight alike", "eighth"}} {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			const rows, length = 8192, 10
			s := &Schema{IDs: Int32, Keys: []Key{{Name: "a", List: true, Set: 1}}}
			m, err := Make(s, rows, rows*length)
			require.NoError(b, err)
			for r := range rows {
				m.Lengths[r] = length
				for i := range length {
					m.Values32[r*length+i] = int32(r)
					if c.different != "all" {
						m.Values32[r*length+i] = int32(r / 8)
					}
				}
			}
			b.SetBytes(4 * rows * length)
			for b.Loop() {
				if _, err := m.Deduplicate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
