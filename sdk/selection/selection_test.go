package selection

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

func manifest(t require.TestingT, rows ...int64) *dataset.Manifest {
	var partitions []dataset.Partition
	for i, n := range rows {
		partitions = append(partitions, dataset.Partition{Name: string(rune('a' + i)), Rows: n, RowGroups: []int64{n}})
	}
	m, err := dataset.NewManifest(partitions)
	require.NoError(t, err)
	return m
}

// build makes a selection of the outcome of every row.
func build(t require.TestingT, partitions ...[]bool) *Selection {
	var rows []int64
	for _, passes := range partitions {
		rows = append(rows, int64(len(passes)))
	}
	b, err := NewBuilder(manifest(t, rows...), dataset.Digest{7})
	require.NoError(t, err)
	for i, passes := range partitions {
		for first := 0; first < len(passes); {
			n := min(len(passes)-first, 1+(first*7+i)%5000)
			require.NoError(t, b.Add(i, int64(first), passes[first:first+n]))
			first += n
		}
	}
	s, err := b.Finish()
	require.NoError(t, err)
	return s
}

// draw draws the outcomes of rows: none, all, few, half or most of them pass, in runs or one by one.
func draw(t *rapid.T, rows int) []bool {
	passes := make([]bool, rows)
	every := rapid.SampledFrom([]int{0, 1, 2, 3, 15, 16, 17, 100}).Draw(t, "every")
	run := rapid.SampledFrom([]int{1, 1000, 70000}).Draw(t, "run")
	seed := rapid.Uint64().Draw(t, "seed")
	for i := range passes {
		x := (uint64(i/run) + seed) * 0x9e3779b97f4a7c15
		passes[i] = every > 0 && (x>>33)%uint64(every) == 0
	}
	return passes
}

func TestSelectionKnowsItsRows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SampledFrom([]int{0, 1, 7, 8, 9, 1000, chunkRows - 1, chunkRows, chunkRows + 1, 3*chunkRows + 5})
		want := [][]bool{draw(rt, rows.Draw(rt, "rows")), draw(rt, rows.Draw(rt, "rows"))}
		s := build(rt, want...)
		again, err := Decode(s.Encode())
		require.NoError(rt, err)
		require.Equal(rt, s, again)
		total := int64(0)
		for p, passes := range want {
			r := s.Rows(p)
			require.EqualValues(rt, len(passes), r.Tested())
			var passing []int64
			for i, pass := range passes {
				if pass {
					passing = append(passing, int64(i))
				}
			}
			require.EqualValues(rt, len(passing), r.Passing())
			total += r.Passing()
			for _, n := range []int{0, 1, len(passing) / 2, len(passing) - 1} {
				if n >= 0 && n < len(passing) {
					require.Equal(rt, passing[n], r.Row(int64(n)), "row %d", n)
				}
			}
			first := rapid.Int64Range(0, int64(len(passes))).Draw(rt, "first")
			count := rapid.IntRange(0, chunkRows+9).Draw(rt, "count")
			var offsets []uint32
			for _, row := range passing {
				if row >= first && row < first+int64(count) {
					offsets = append(offsets, uint32(row-first))
				}
			}
			require.Equal(rt, offsets, r.AppendPassing(nil, first, count))
		}
		require.Equal(rt, total, s.Passing())
		require.Equal(rt, []int64{s.Rows(0).Passing(), s.Rows(1).Passing()}, s.Counts())
		require.Equal(rt, 2, s.Partitions())
	})
}

func TestBuilderTakesEveryRowOnceAndInOrder(t *testing.T) {
	b, err := NewBuilder(manifest(t, 3, 2), dataset.Digest{})
	require.NoError(t, err)
	require.ErrorIs(t, b.Add(2, 0, []bool{true}), ErrRows)
	require.ErrorIs(t, b.Add(-1, 0, []bool{true}), ErrRows)
	require.ErrorIs(t, b.Add(0, 1, []bool{true}), ErrRows)
	require.ErrorIs(t, b.Add(0, 0, make([]bool, 4)), ErrRows)
	require.NoError(t, b.Add(1, 0, []bool{true, false}), "partitions take turns")
	require.NoError(t, b.Add(0, 0, []bool{true, false}))
	require.ErrorIs(t, b.Add(0, 0, []bool{true}), ErrRows)
	_, err = b.Finish()
	require.ErrorIs(t, err, ErrRows)
	require.NoError(t, b.Add(0, 2, []bool{true}))
	s, err := b.Finish()
	require.NoError(t, err)
	assert.Equal(t, []int64{2, 1}, s.Counts())
}

// TestTheFileIsCanonical checks the golden digest of a selection, and that other bytes for the same rows are refused.
func TestTheFileIsCanonical(t *testing.T) {
	passes := make([]bool, chunkRows+100)
	for i := range passes {
		passes[i] = i%3 == 0
	}
	s := build(t, passes, []bool{false, false}, []bool{true})
	assert.Equal(t, "016f7715948813b98cc435edafd6c871079bc9267d180c94031b01b60772957e", s.Digest.String())
	require.Equal(t, formBitmap, s.partitions[0].chunks[0].form)

	sparse := make([]bool, 300)
	sparse[4], sparse[299] = true, true
	goldenfile.Bytes(t, "testdata/selection.v1.hex", build(t, sparse, []bool{true, false, true}, nil, []bool{true},
		[]bool{false}).Encode())

	path := filepath.Join(t.TempDir(), "s.selection")
	require.NoError(t, s.Write(path))
	loaded, err := Load(path)
	require.NoError(t, err)
	assert.Equal(t, s, loaded)
	_, err = Load(filepath.Dir(path))
	require.ErrorIs(t, err, ErrDamaged)
	_, err = Load(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)

	whole := s.Encode()
	change := func(edit func(b []byte) []byte) error {
		b := edit(append([]byte{}, whole[:len(whole)-4]...))
		_, err := Decode(binary.LittleEndian.AppendUint32(b, crc32c.Checksum(b)))
		return err
	}
	require.NoError(t, change(func(b []byte) []byte { return b }))
	for name, edit := range map[string]func(b []byte) []byte{
		"magic":           func(b []byte) []byte { b[0]++; return b },
		"partitions":      func(b []byte) []byte { b[79] = 1; return b },
		"rows":            func(b []byte) []byte { b[87] = 1; return b },
		"form":            func(b []byte) []byte { b[len(b)-1] = 9; return b },
		"bytes behind":    func(b []byte) []byte { return append(b, 0) },
		"cut":             func(b []byte) []byte { return b[:len(b)-1] },
		"a list of none":  func(b []byte) []byte { b[len(b)-1] = byte(formList); return append(b, 0, 0) },
		"a bitmap of all": func(b []byte) []byte { b[len(b)-1] = byte(formBitmap); return append(b, 1) },
		"bits behind":     func(b []byte) []byte { b[len(b)-1] = byte(formBitmap); return append(b, 3) },
	} {
		require.ErrorIs(t, change(edit), ErrDamaged, name)
	}
	require.ErrorIs(t, change(func(b []byte) []byte { b[8]++; return b }), ErrVersion)
	_, err = Decode(whole[:len(whole)-4])
	require.ErrorIs(t, err, ErrDamaged, "the CRC32C")
	_, err = Decode(whole[:headerBytes])
	require.ErrorIs(t, err, ErrDamaged)
}

func FuzzDecode(f *testing.F) {
	sparse := make([]bool, 2000)
	sparse[5], sparse[1999] = true, true
	for _, s := range []*Selection{build(f), build(f, []bool{true}, nil), build(f, sparse, []bool{true, false, true})} {
		f.Add(s.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil && len(b) >= headerBytes+trailerBytes { // go on behind the sum
			b = append([]byte{}, b...)
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32c.Checksum(b[:len(b)-4]))
			s, err = Decode(b)
		}
		if err != nil {
			return
		}
		require.Equal(t, b, s.Encode(), "equal selections have equal bytes")
		for i := range s.Partitions() {
			r := s.Rows(i)
			passing := r.AppendPassing(nil, 0, int(min(r.Tested(), chunkRows)))
			for n, row := range passing {
				require.EqualValues(t, row, r.Row(int64(n)))
			}
		}
	})
}
