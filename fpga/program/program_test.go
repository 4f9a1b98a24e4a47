package program

import (
	"bytes"
	"encoding/hex"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares bytes with a file of hexadecimal lines.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		var b strings.Builder
		for i := 0; i < len(got); i += 32 {
			b.WriteString(hex.EncodeToString(got[i:min(i+32, len(got))]))
			b.WriteByte('\n')
		}
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(t, err)
	assert.Equal(t, want, got, "the wire form of a version never changes: raise the version")
}

// everyOp is a Parquet program in which each operator occurs.
func everyOp() *Program {
	borders := []float32{0.5, 1, 1.5}
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "cat_0", Kind: Int64, Sinks: []Sink{
				{To: ToSparse, Index: 0, Ops: []Op{FillNull{}, SigridHash{Salt: -7, Max: 500000}}},
			}},
			{Name: "tags.list.element", Kind: Int64, List: true, Sinks: []Sink{
				{To: ToSparse, Index: 1, Ops: []Op{FirstX{N: 3}, ZeroExtend{}, PositiveModulus{M: 1 << 20}}},
			}},
			{Name: "hex", Kind: Bytes, Sinks: []Sink{
				{To: ToSparse, Index: 2, Ops: []Op{HexToInt{}, Clamp{IntLo: 0, IntHi: 99, FloatLo: math.Inf(-1),
					FloatHi: math.Inf(1)}}},
			}},
			{Name: "int_0", Kind: Int64, Sinks: []Sink{
				{To: ToSparse, Index: 3, Ops: []Op{FillNull{}, Convert{To: Float32}, &Bucketize{Borders32: borders}}},
				{To: ToSparse, Index: 4, Ops: []Op{FillNull{},
					&Bucketize{Side: Right, BordersInt: []int64{-1, 1 << 40}}}},
				{To: ToDense, Index: 1, Ops: []Op{FillNull{Int: 1, Float: 1}, Convert{To: Float32}, Log{Add: 1}}},
			}},
			{Name: "x", Kind: Float64, Sinks: []Sink{
				{To: ToSparse, Index: 5, Ops: []Op{&Bucketize{NaN: NaNLast,
					Borders64: []float64{0.1, 0.1, math.Inf(1)}}}},
			}},
			{Name: "y", Kind: Float32, Sinks: []Sink{
				{To: ToSparse, Index: 6, Ops: []Op{&Bucketize{NaN: NaNError, Borders32: []float32{0.5, 1, 1.5}}}},
				{To: ToDense, Index: 0, Ops: []Op{Clamp{FloatLo: -1, FloatHi: 1}}},
			}},
			{Name: "label", Kind: Int64, Sinks: []Sink{{To: ToLabel, Ops: []Op{Convert{To: Float32}}}}},
		},
		Output: Output{Label: true, Dense: 2, Keys: 7, IDs: IDs32},
	}
}

// realOps is a program with the operators of real numbers that came after those of everyOp.
func realOps() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{{Name: "rate", Kind: Float32, Sinks: []Sink{
			{To: ToDense, Index: 0, Ops: []Op{Logit{Eps: 1e-6}}},
			{To: ToDense, Index: 1, Ops: []Op{Logit{Eps: -1}}},
			{To: ToDense, Index: 2, Ops: []Op{BoxCox{Lambda1: 0.5, Lambda2: 1}}},
			{To: ToDense, Index: 3, Ops: []Op{BoxCox{Lambda1: -2, Mode: BoxCoxRAP}}},
		}}},
		Output: Output{Dense: 4},
	}
}

// scaled is a program with normalize and min_max.
func scaled() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{{Name: "rate", Kind: Float32, Sinks: []Sink{
			{To: ToDense, Index: 0, Ops: []Op{Normalize{Mean: 0.1, Deviation: 3}}},
			{To: ToDense, Index: 1, Ops: []Op{MinMax{Min: -0.1, Max: 7}}},
		}}},
		Output: Output{Dense: 2},
	}
}

// windows is a program with ngram.
func windows() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{{Name: "ids", Kind: Int64, List: true, Sinks: []Sink{
			{To: ToSparse, Ops: []Op{NGram{N: 2}, PositiveModulus{M: 1000}}},
		}}},
		Output: Output{Keys: 1},
	}
}

// listedWindows is a program with ngram in the mode that lists the ids of windows.
func listedWindows() *Program {
	p := windows()
	p.Columns[0].Sinks[0].Ops[0] = NGram{N: 3, Mode: NGramRAP}
	return p
}

// parts is a program with list_slice.
func parts() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "ids", Kind: Int64, List: true, Sinks: []Sink{
				{To: ToSparse, Ops: []Op{ListSlice{Start: -5, End: NoEnd, Padded: true, PadInt: -1},
					ListSlice{Start: 1, End: -1}}},
			}},
			{Name: "reals", Kind: Float32, List: true, Sinks: []Sink{
				{To: ToSparse, Index: 1, Ops: []Op{ListSlice{End: 3, Padded: true, PadFloat: 0.5},
					&Bucketize{Borders32: []float32{1}}}},
			}},
		},
		Output: Output{Keys: 2},
	}
}

// categories is a program with hash_bytes.
func categories() *Program {
	p := &Program{Source: Parquet, Output: Output{Keys: 3}}
	for i, f := range []HashFunction{HashXXH3, HashMurmur3, HashFarmHash} {
		p.Columns = append(p.Columns, Column{Name: f.String(), Kind: Bytes, List: i == 2, Sinks: []Sink{
			{To: ToSparse, Index: uint32(i), Ops: []Op{HashBytes{Function: f}, PositiveModulus{M: 1000}}},
		}})
	}
	return p
}

// tables is a program with operators of tables, two of which share one.
func tables() *Program {
	keys, values := []int64{-5, 10, math.MaxInt64}, []int64{2, 1, 3}
	return &Program{
		Source: Parquet,
		Columns: []Column{{Name: "id", Kind: Int64, Sinks: []Sink{
			{To: ToSparse, Ops: []Op{&MapID{Keys: keys, Values: values, Default: -1}}},
			{To: ToSparse, Index: 1, Ops: []Op{&MapID{Values: values}}},
			{To: ToSparse, Index: 2, Ops: []Op{&LocalHour{Starts: []int64{math.MinInt64, 1711846800},
				Offsets: []int64{3600,
					7200}}}},
		}}},
		Output: Output{Keys: 3, Fixed: true},
	}
}

// annotated is a program with the operators of times, decimals and FLOAT16.
func annotated() *Program {
	dense := func(index uint32, ops ...Op) Sink { return Sink{To: ToDense, Index: index, Ops: ops} }
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "millis", Kind: Int64, Sinks: []Sink{
				{To: ToSparse, Ops: []Op{Rescale{Multiplier: 1, Divisor: 1000}, PositiveModulus{M: 1000}}}}},
			{Name: "int96", Kind: Bytes, List: true, Sinks: []Sink{
				{To: ToSparse, Index: 1, Ops: []Op{Int96Time{To: TimeDays}, Rescale{Multiplier: 86400, Divisor: 1}}}}},
			{Name: "unscaled", Kind: Bytes, Sinks: []Sink{{To: ToSparse, Index: 2, Ops: []Op{Decimal{To: Int64}}},
				dense(0, Decimal{Scale: MaxScale, To: Float64}, Convert{To: Float32})}},
			{Name: "price", Kind: Int64, Sinks: []Sink{dense(1, Decimal{Scale: 2, To: Float32})}},
			{Name: "half", Kind: Bytes, Sinks: []Sink{dense(2, Float16{})}},
		},
		Output: Output{Dense: 3, Keys: 3},
	}
}

// embeddings is a program with lists that become dense columns, one filled up, beside a key.
func embeddings() *Program {
	dense := func(index uint32, ops ...Op) []Sink { return []Sink{{To: ToDense, Index: index, Ops: ops}} }
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "id", Kind: Int64, Sinks: []Sink{{To: ToSparse}}},
			{Name: "user", Kind: Float32, List: true, Sinks: dense(1, FixedLength{Length: 3})},
			{Name: "item", Kind: Float64, List: true, Sinks: dense(4, FirstX{N: 2}, Convert{To: Float32},
				FixedLength{Length: 2, Pads: true, Pad: -1})},
			{Name: "price", Kind: Float32, Sinks: dense(0)},
		},
		Output: Output{Dense: 6, Keys: 1, Fixed: true},
	}
}

// textProgram is a small program over Criteo's text rows with fixed lengths.
func textProgram() *Program {
	return &Program{
		Source: CriteoTSV, Label: true, Malformed: MalformedDrop,
		Columns: []Column{
			{Name: "cat_0", Field: 14, Kind: Int64, Sinks: []Sink{{To: ToSparse,
				Ops: []Op{FillNull{}, PositiveModulus{M: 5000}}}}},
			{Name: "label", Kind: Int64, Sinks: []Sink{{To: ToLabel, Ops: []Op{Convert{To: Float32}}}}},
		},
		Output: Output{Label: true, Keys: 1, Fixed: true},
	}
}

func TestProgramGolden(t *testing.T) {
	golden(t, "every_op.v1.hex", everyOp().Marshal())
	golden(t, "text.v1.hex", textProgram().Marshal())
	golden(t, "reals.v1.hex", realOps().Marshal())
	golden(t, "ngram.v1.hex", windows().Marshal())
	golden(t, "ngram.v1.6.hex", listedWindows().Marshal())
	golden(t, "hash_bytes.v1.hex", categories().Marshal())
	golden(t, "tables.v1.hex", tables().Marshal())
	golden(t, "list_slice.v1.hex", parts().Marshal())
	golden(t, "scaled.v1.hex", scaled().Marshal())
	golden(t, "annotated.v1.hex", annotated().Marshal())
	golden(t, "fixed_length.v1.hex", embeddings().Marshal())
}

func TestProgramRoundTrip(t *testing.T) {
	for _, p := range []*Program{everyOp(), textProgram(), realOps(), windows(), categories(), tables(), scaled(),
		annotated(), embeddings(), listedWindows(), parts()} {
		require.NoError(t, p.Validate())
		b := p.Marshal()
		q, err := Unmarshal(b)
		require.NoError(t, err)
		assert.Equal(t, p, q)
		assert.Equal(t, b, q.Marshal())
	}
}

func TestProgramAppendTo(t *testing.T) {
	b := everyOp().AppendTo([]byte("before"))
	require.Equal(t, "before", string(b[:6]))
	assert.Equal(t, everyOp().Marshal(), b[6:])
}

func TestProgramSharesTables(t *testing.T) {
	q, err := Unmarshal(everyOp().Marshal())
	require.NoError(t, err)
	first := q.Columns[3].Sinks[0].Ops[2].(*Bucketize)
	again := q.Columns[5].Sinks[0].Ops[0].(*Bucketize)
	assert.Same(t, &first.Borders32[0], &again.Borders32[0], "equal borders are one table")
	assert.Equal(t, NaNTorchArrow, first.NaN)
	assert.Equal(t, NaNError, again.NaN)
}

func TestProgramSharesTablesOfIDs(t *testing.T) {
	p := tables()
	other := &MapID{Keys: []int64{-5, 10, math.MaxInt64}, Values: []int64{2, 1, 3}, Default: -1}
	p.Columns[0].Sinks = append(p.Columns[0].Sinks, Sink{To: ToSparse, Index: 3, Ops: []Op{other}})
	p.Output.Keys = 4
	q, err := Unmarshal(p.Marshal())
	require.NoError(t, err)
	sinks := q.Columns[0].Sinks
	assert.Same(t, sinks[0].Ops[0], sinks[3].Ops[0], "equal operators are one")
	assert.Same(t, &sinks[0].Ops[0].(*MapID).Values[0], &sinks[1].Ops[0].(*MapID).Values[0], "equal tables are one")
}

// Tables that operators name must exist and hold integers.
func TestProgramRefusesTables(t *testing.T) {
	b := tables().Marshal()
	find := func(unit Unit) int {
		return bytes.Index(b, le.AppendUint16(le.AppendUint16(nil, uint16(unit)), unit.Version())) + opSize
	}
	for name, at := range map[string]int{"times": find(UnitLocalHour), "offsets": find(UnitLocalHour) + 4,
		"keys": find(UnitMapID), "values": find(UnitMapID) + 4} {
		bad := bytes.Clone(b)
		le.PutUint32(bad[at:], 4)
		_, err := Unmarshal(reseal(bad))
		require.ErrorIs(t, err, ErrCorrupt, name)
		require.ErrorContains(t, err, "wants table 4 of 4", name)
	}
	p := tables()
	p.Columns = append(p.Columns, Column{Name: "y", Kind: Float32, Sinks: []Sink{
		{To: ToSparse, Index: 3, Ops: []Op{&Bucketize{Borders32: []float32{1}}}}}})
	p.Output.Keys = 4
	b = p.Marshal()
	le.PutUint32(b[find(UnitLocalHour):], 4)
	_, err := Unmarshal(reseal(b))
	require.ErrorContains(t, err, "get_local_hour wants integers, and table 4 has none")
}

func TestProgramKeepsNegativeZeroBorders(t *testing.T) {
	p := everyOp()
	p.Columns[5].Sinks[0].Ops[0].(*Bucketize).Borders32 = []float32{0, 1}
	p.Columns[3].Sinks[0].Ops[2].(*Bucketize).Borders32 = []float32{float32(math.Copysign(0, -1)), 1}
	q, err := Unmarshal(p.Marshal())
	require.NoError(t, err)
	assert.False(t, math.Signbit(float64(q.Columns[5].Sinks[0].Ops[0].(*Bucketize).Borders32[0])))
	assert.True(t, math.Signbit(float64(q.Columns[3].Sinks[0].Ops[2].(*Bucketize).Borders32[0])))
}

// reseal corrects the header's length and checksum after an edit.
func reseal(b []byte) []byte {
	le.PutUint64(b[lengthOffset:], uint64(len(b)))
	le.PutUint32(b[crcOffset:], checksum(b))
	return b
}

// appended returns the text program with one more section.
func appended(id, flags uint16) []byte {
	b := textProgram().Marshal()
	b = le.AppendUint16(b, id)
	b = le.AppendUint16(b, flags)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, 3)
	b = append(b, 1, 2, 3, 0, 0, 0, 0, 0)
	le.PutUint32(b[12:], 5)
	return reseal(b)
}

func TestProgramVersions(t *testing.T) {
	t.Run("another major version", func(t *testing.T) {
		b := textProgram().Marshal()
		b[8]++
		_, err := Unmarshal(reseal(b))
		require.ErrorIs(t, err, ErrVersion)
		assert.EqualError(t, err, "program: unsupported version 2.0, want 1.x")
	})
	t.Run("another minor version", func(t *testing.T) {
		b := textProgram().Marshal()
		b[10] = 9
		_, err := Unmarshal(reseal(b))
		require.NoError(t, err)
	})
	t.Run("an unknown section that is not required", func(t *testing.T) {
		p, err := Unmarshal(appended(77, 0))
		require.NoError(t, err)
		assert.Equal(t, textProgram(), p)
	})
	t.Run("an unknown section that is required", func(t *testing.T) {
		_, err := Unmarshal(appended(77, 1))
		require.ErrorIs(t, err, ErrUnknown)
		var unknown *UnknownError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, uint16(77), unknown.Section)
		assert.EqualError(t, err, "program: section 77 is unknown and required")
	})
	op := bytes.Index(textProgram().Marshal(), []byte{byte(UnitPositiveModulus), 0, 1, 0, 8, 0, 0, 0})
	require.Positive(t, op)
	t.Run("an unknown unit", func(t *testing.T) {
		b := textProgram().Marshal()
		b[op+1] = 3
		_, err := Unmarshal(reseal(b))
		require.ErrorIs(t, err, ErrUnknown)
		assert.EqualError(t, err, "program: unit 774 (version 1) is unknown and required")
	})
	t.Run("an unknown version of a unit", func(t *testing.T) {
		b := textProgram().Marshal()
		b[op+2] = 4
		_, err := Unmarshal(reseal(b))
		var unknown *UnknownError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, UnknownError{Unit: UnitPositiveModulus, Version: 4}, *unknown)
		assert.EqualError(t, err,
			"program: version 4 of unit positive_modulus is unknown and required; this build has version 1")
	})
	t.Run("a decoding unit is no operator", func(t *testing.T) {
		b := textProgram().Marshal()
		b[op] = byte(UnitText)
		_, err := Unmarshal(reseal(b))
		require.ErrorIs(t, err, ErrUnknown)
	})
}

func TestProgramDamage(t *testing.T) {
	good := everyOp().Marshal()
	t.Run("every truncation", func(t *testing.T) {
		for n := range good {
			_, err := Unmarshal(good[:n:n])
			require.ErrorIs(t, err, ErrCorrupt, "%d bytes", n)
		}
	})
	t.Run("every truncation, with a right checksum", func(t *testing.T) {
		for n := headerSize; n < len(good); n++ {
			_, err := Unmarshal(reseal(bytes.Clone(good[:n])))
			require.ErrorIs(t, err, ErrCorrupt, "%d bytes", n)
		}
	})
	t.Run("every flipped bit", func(t *testing.T) {
		b := bytes.Clone(good)
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			_, err := Unmarshal(b)
			require.Error(t, err, "bit %d", i)
			b[i/8] ^= 1 << (i % 8)
		}
	})
	t.Run("every flipped bit, with a right checksum, is refused or means something", func(t *testing.T) {
		b := bytes.Clone(good)
		for i := 8 * headerSize; i < 8*len(b); i++ {
			b[i/8] ^= 1 << (i % 8)
			if p, err := Unmarshal(reseal(b)); err == nil {
				require.NotEqual(t, good, p.Marshal(), "bit %d is not read", i)
			}
			b[i/8] ^= 1 << (i % 8)
		}
	})
	t.Run("bytes behind", func(t *testing.T) {
		_, err := Unmarshal(append(bytes.Clone(good), 0))
		require.ErrorIs(t, err, ErrCorrupt)
		_, err = Unmarshal(reseal(append(bytes.Clone(good), 0, 0, 0, 0, 0, 0, 0, 0)))
		require.ErrorIs(t, err, ErrCorrupt)
	})
	t.Run("empty", func(t *testing.T) {
		_, err := Unmarshal(nil)
		require.ErrorIs(t, err, ErrCorrupt)
	})
}

// TestProgramHostileCounts checks that a count far above what the bytes can hold is refused before memory is
// allocated for it.
func TestProgramHostileCounts(t *testing.T) {
	b := textProgram().Marshal()
	at := headerSize + sectionSize + sourceSize // the section of tables
	le.PutUint32(b[at+sectionSize:], 1<<17)
	allocs := testing.Benchmark(func(tb *testing.B) {
		for range tb.N {
			_, _ = Unmarshal(reseal(b))
		}
	})
	_, err := Unmarshal(b)
	require.ErrorIs(t, err, ErrCorrupt)
	assert.Less(t, allocs.AllocedBytesPerOp(), int64(64<<10))
}

func TestUnits(t *testing.T) {
	assert.Equal(t, []UnitRef{{UnitFillNull, 1}, {UnitPositiveModulus, 1}, {UnitConvert, 1}, {UnitText, 1}},
		textProgram().Units())
	known := Known()
	for _, ref := range everyOp().Units() {
		assert.Contains(t, known, ref)
	}
	assert.Len(t, everyOp().Units(), 11, "ten operators and the decoding unit")
	assert.Len(t, known, 39)
}

func TestProgramString(t *testing.T) {
	want := `source criteo-tsv, label field true, malformed rows drop
column 0 "cat_0" int64 field 14
  sparse 0: fill_null 0 | positive_modulus 5000
column 1 "label" int64 field 0
  label: convert float32
output label true, dense 0, keys 1, ids int64, fixed true
`
	assert.Equal(t, want, textProgram().String())
	all := everyOp().String()
	for _, s := range []string{
		"list<int64>", "clamp 0..99", "bucketize float32 [0.5 1 1.5] side left nan torcharrow", "log +1",
		"bucketize int64 [-1 1099511627776] side right", "hex_to_int", "zero_extend", "firstx 3",
		"sigrid_hash salt -7 max 500000",
	} {
		assert.Contains(t, all, s)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(everyOp().Marshal())
	f.Add(textProgram().Marshal())
	f.Add(appended(77, 0))
	f.Add(mapProgram().Marshal())
	f.Add(bfloatProgram().Marshal())
	f.Add(graphProgram().Marshal())
	f.Add(absentColumns().Marshal())
	f.Add(annotated().Marshal())
	f.Add(embeddings().Marshal())
	f.Add(crosses().Marshal())
	f.Add(scoring().Marshal())
	f.Add(scoredLists().Marshal())
	f.Add(mapSteps().Marshal())
	f.Add(hotColumns().Marshal())
	f.Add(refusingProgram().Marshal())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize {
			b = reseal(bytes.Clone(b)) // else the fuzzer would never get past the checksum
		}
		p, err := Unmarshal(b)
		if err != nil {
			return
		}
		_ = p.String()
		_ = p.Units()
		q, err := Unmarshal(p.Marshal())
		require.NoError(t, err)
		require.Equal(t, p.Marshal(), q.Marshal())
	})
}
