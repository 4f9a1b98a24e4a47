package wire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/boxcox"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/int96time"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/logit"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/zeroextend"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

var le = binary.LittleEndian

// everyOp is a Parquet program in which each operator occurs.
func everyOp() *program.Program {
	borders := []float32{0.5, 1, 1.5}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "cat_0", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 0, Ops: []program.Op{fillnull.Op{}, sigridhash.Op{Salt: -7, Max: 500000}}},
			}},
			{Name: "tags.list.element", Kind: program.Int64, List: true, Sinks: []program.Sink{
				{
					To:    program.ToSparse,
					Index: 1,
					Ops:   []program.Op{firstx.Op{N: 3}, zeroextend.Op{}, positivemodulus.Op{M: 1 << 20}},
				},
			}},
			{Name: "hex", Kind: program.Bytes, Sinks: []program.Sink{
				{
					To:    program.ToSparse,
					Index: 2,
					Ops: []program.Op{hextoint.Op{}, clamp.Op{IntLo: 0, IntHi: 99, FloatLo: math.Inf(-1),
						FloatHi: math.Inf(1)}},
				},
			}},
			{Name: "int_0", Kind: program.Int64, Sinks: []program.Sink{
				{
					To:    program.ToSparse,
					Index: 3,
					Ops:   []program.Op{fillnull.Op{}, convert.Op{To: program.Float32}, &bucketize.Op{Borders32: borders}},
				},
				{To: program.ToSparse, Index: 4, Ops: []program.Op{fillnull.Op{},
					&bucketize.Op{Side: bucketize.Right, BordersInt: []int64{-1, 1 << 40}}}},
				{
					To:    program.ToDense,
					Index: 1,
					Ops:   []program.Op{fillnull.Op{Int: 1, Float: 1}, convert.Op{To: program.Float32}, log.Op{Add: 1}},
				},
			}},
			{Name: "x", Kind: program.Float64, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 5, Ops: []program.Op{&bucketize.Op{NaN: bucketize.NaNLast,
					Borders64: []float64{0.1, 0.1, math.Inf(1)}}}},
			}},
			{Name: "y", Kind: program.Float32, Sinks: []program.Sink{
				{
					To:    program.ToSparse,
					Index: 6,
					Ops:   []program.Op{&bucketize.Op{NaN: bucketize.NaNError, Borders32: []float32{0.5, 1, 1.5}}},
				},
				{To: program.ToDense, Index: 0, Ops: []program.Op{clamp.Op{FloatLo: -1, FloatHi: 1}}},
			}},
			{
				Name:  "label",
				Kind:  program.Int64,
				Sinks: []program.Sink{{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}}},
			},
		},
		Output: program.Output{Label: true, Dense: 2, Keys: 7, IDs: program.IDs32},
	}
}

// realOps is a program with the operators of real numbers that came after those of everyOp.
func realOps() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: "rate", Kind: program.Float32, Sinks: []program.Sink{
			{To: program.ToDense, Index: 0, Ops: []program.Op{logit.Op{Eps: 1e-6}}},
			{To: program.ToDense, Index: 1, Ops: []program.Op{logit.Op{Eps: -1}}},
			{To: program.ToDense, Index: 2, Ops: []program.Op{boxcox.Op{Lambda1: 0.5, Lambda2: 1}}},
			{To: program.ToDense, Index: 3, Ops: []program.Op{boxcox.Op{Lambda1: -2, Mode: boxcox.RAP}}},
		}}},
		Output: program.Output{Dense: 4},
	}
}

// scaled is a program with normalize and min_max.
func scaled() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: "rate", Kind: program.Float32, Sinks: []program.Sink{
			{To: program.ToDense, Index: 0, Ops: []program.Op{normalize.Op{Mean: 0.1, Deviation: 3}}},
			{To: program.ToDense, Index: 1, Ops: []program.Op{minmax.Op{Min: -0.1, Max: 7}}},
		}}},
		Output: program.Output{Dense: 2},
	}
}

// windows is a program with ngram.
func windows() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: "ids", Kind: program.Int64, List: true, Sinks: []program.Sink{
			{To: program.ToSparse, Ops: []program.Op{ngram.Op{N: 2}, positivemodulus.Op{M: 1000}}},
		}}},
		Output: program.Output{Keys: 1},
	}
}

// listedWindows is a program with ngram in the mode that lists the ids of windows.
func listedWindows() *program.Program {
	p := windows()
	p.Columns[0].Sinks[0].Ops[0] = ngram.Op{N: 3, Mode: ngram.RAP}
	return p
}

// parts is a program with list_slice.
func parts() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "ids", Kind: program.Int64, List: true, Sinks: []program.Sink{
				{To: program.ToSparse, Ops: []program.Op{listslice.Op{Start: -5, End: listslice.NoEnd, Padded: true, PadInt: -1},
					listslice.Op{Start: 1, End: -1}}},
			}},
			{Name: "reals", Kind: program.Float32, List: true, Sinks: []program.Sink{
				{To: program.ToSparse, Index: 1, Ops: []program.Op{listslice.Op{End: 3, Padded: true, PadFloat: 0.5},
					&bucketize.Op{Borders32: []float32{1}}}},
			}},
		},
		Output: program.Output{Keys: 2},
	}
}

// categories is a program with hash_bytes.
func categories() *program.Program {
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 3}}
	for i, f := range []hashbytes.Function{hashbytes.XXH3, hashbytes.Murmur3, hashbytes.FarmHash} {
		p.Columns = append(
			p.Columns,
			program.Column{Name: f.String(), Kind: program.Bytes, List: i == 2, Sinks: []program.Sink{
				{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{hashbytes.Op{Function: f}, positivemodulus.Op{M: 1000}}},
			}},
		)
	}
	return p
}

// tables is a program with operators of tables, two of which share one.
func tables() *program.Program {
	keys, values := []int64{-5, 10, math.MaxInt64}, []int64{2, 1, 3}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{{Name: "id", Kind: program.Int64, Sinks: []program.Sink{
			{To: program.ToSparse, Ops: []program.Op{&mapid.Op{Keys: keys, Values: values, Default: -1}}},
			{To: program.ToSparse, Index: 1, Ops: []program.Op{&mapid.Op{Values: values}}},
			{To: program.ToSparse, Index: 2, Ops: []program.Op{&getlocalhour.Op{Starts: []int64{math.MinInt64, 1711846800},
				Offsets: []int64{3600,
					7200}}}},
		}}},
		Output: program.Output{Keys: 3, Fixed: true},
	}
}

// annotated is a program with the operators of times, decimals and FLOAT16.
func annotated() *program.Program {
	dense := func(index uint32, ops ...program.Op) program.Sink {
		return program.Sink{To: program.ToDense, Index: index, Ops: ops}
	}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "millis", Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Ops: []program.Op{rescale.Op{Multiplier: 1, Divisor: 1000}, positivemodulus.Op{M: 1000}}}}},
			{Name: "int96", Kind: program.Bytes, List: true, Sinks: []program.Sink{
				{
					To:    program.ToSparse,
					Index: 1,
					Ops:   []program.Op{int96time.Op{To: int96time.Days}, rescale.Op{Multiplier: 86400, Divisor: 1}},
				}}},
			{
				Name: "unscaled",
				Kind: program.Bytes,
				Sinks: []program.Sink{{To: program.ToSparse, Index: 2, Ops: []program.Op{decimal.Op{To: program.Int64}}},
					dense(0, decimal.Op{Scale: decimal.MaxScale, To: program.Float64}, convert.Op{To: program.Float32})},
			},
			{Name: "price", Kind: program.Int64, Sinks: []program.Sink{dense(1, decimal.Op{Scale: 2, To: program.Float32})}},
			{Name: "half", Kind: program.Bytes, Sinks: []program.Sink{dense(2, float16.Op{})}},
		},
		Output: program.Output{Dense: 3, Keys: 3},
	}
}

// embeddings is a program with lists that become dense columns, one filled up, beside a key.
func embeddings() *program.Program {
	dense := func(index uint32, ops ...program.Op) []program.Sink {
		return []program.Sink{{To: program.ToDense, Index: index, Ops: ops}}
	}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "id", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse}}},
			{Name: "user", Kind: program.Float32, List: true, Sinks: dense(1, fixedlength.Op{Length: 3})},
			{Name: "item", Kind: program.Float64, List: true, Sinks: dense(4, firstx.Op{N: 2}, convert.Op{To: program.Float32},
				fixedlength.Op{Length: 2, Pads: true, Pad: -1})},
			{Name: "price", Kind: program.Float32, Sinks: dense(0)},
		},
		Output: program.Output{Dense: 6, Keys: 1, Fixed: true},
	}
}

// textProgram is a small program over Criteo's text rows with fixed lengths.
func textProgram() *program.Program {
	return &program.Program{
		Source: program.CriteoTSV, Label: true, Malformed: program.MalformedDrop,
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Sinks: []program.Sink{{To: program.ToSparse,
				Ops: []program.Op{fillnull.Op{}, positivemodulus.Op{M: 5000}}}}},
			{
				Name:  "label",
				Kind:  program.Int64,
				Sinks: []program.Sink{{To: program.ToLabel, Ops: []program.Op{convert.Op{To: program.Float32}}}},
			},
		},
		Output: program.Output{Label: true, Keys: 1, Fixed: true},
	}
}

func TestProgramSharesTables(t *testing.T) {
	q, err := operator.Unmarshal(wire.Marshal(everyOp()))
	require.NoError(t, err)
	first := q.Columns[3].Sinks[0].Ops[2].(*bucketize.Op)
	again := q.Columns[5].Sinks[0].Ops[0].(*bucketize.Op)
	assert.Same(t, &first.Borders32[0], &again.Borders32[0], "equal borders are one table")
	assert.Equal(t, bucketize.NaNTorchArrow, first.NaN)
	assert.Equal(t, bucketize.NaNError, again.NaN)
}

func TestProgramSharesTablesOfIDs(t *testing.T) {
	p := tables()
	other := &mapid.Op{Keys: []int64{-5, 10, math.MaxInt64}, Values: []int64{2, 1, 3}, Default: -1}
	p.Columns[0].Sinks = append(p.Columns[0].Sinks, program.Sink{To: program.ToSparse, Index: 3, Ops: []program.Op{other}})
	p.Output.Keys = 4
	q, err := operator.Unmarshal(wire.Marshal(p))
	require.NoError(t, err)
	sinks := q.Columns[0].Sinks
	assert.Same(t, sinks[0].Ops[0], sinks[3].Ops[0], "equal operators are one")
	assert.Same(t, &sinks[0].Ops[0].(*mapid.Op).Values[0], &sinks[1].Ops[0].(*mapid.Op).Values[0], "equal tables are one")
}

// Tables that operators name must exist and hold integers.
func TestProgramRefusesTables(t *testing.T) {
	b := wire.Marshal(tables())
	find := func(unit program.Unit) int {
		return bytes.Index(b, le.AppendUint16(le.AppendUint16(nil, uint16(unit)), unit.Version())) + wire.OpSize
	}
	for name, at := range map[string]int{"times": find(getlocalhour.Unit), "offsets": find(getlocalhour.Unit) + 4,
		"keys": find(mapid.Unit), "values": find(mapid.Unit) + 4} {
		bad := bytes.Clone(b)
		le.PutUint32(bad[at:], 4)
		_, err := operator.Unmarshal(reseal(bad))
		require.ErrorIs(t, err, wire.ErrCorrupt, name)
		require.ErrorContains(t, err, "wants table 4 of 4", name)
	}
	p := tables()
	p.Columns = append(p.Columns, program.Column{Name: "y", Kind: program.Float32, Sinks: []program.Sink{
		{To: program.ToSparse, Index: 3, Ops: []program.Op{&bucketize.Op{Borders32: []float32{1}}}}}})
	p.Output.Keys = 4
	b = wire.Marshal(p)
	le.PutUint32(b[find(getlocalhour.Unit):], 4)
	_, err := operator.Unmarshal(reseal(b))
	require.ErrorContains(t, err, "get_local_hour wants integers, and table 4 has none")
}

func TestProgramKeepsNegativeZeroBorders(t *testing.T) {
	p := everyOp()
	p.Columns[5].Sinks[0].Ops[0].(*bucketize.Op).Borders32 = []float32{0, 1}
	p.Columns[3].Sinks[0].Ops[2].(*bucketize.Op).Borders32 = []float32{float32(math.Copysign(0, -1)), 1}
	q, err := operator.Unmarshal(wire.Marshal(p))
	require.NoError(t, err)
	assert.False(t, math.Signbit(float64(q.Columns[5].Sinks[0].Ops[0].(*bucketize.Op).Borders32[0])))
	assert.True(t, math.Signbit(float64(q.Columns[3].Sinks[0].Ops[2].(*bucketize.Op).Borders32[0])))
}

// reseal corrects the header's length and checksum after an edit.
func reseal(b []byte) []byte {
	le.PutUint64(b[wire.LengthOffset:], uint64(len(b)))
	le.PutUint32(b[wire.CRCOffset:], wire.Checksum(b))
	return b
}

// TestEverySectionIsNeeded leaves each section of a program out. A program without one of the first four is damaged,
// and none makes the decoder panic.
func TestEverySectionIsNeeded(t *testing.T) {
	for _, b := range [][]byte{wire.Marshal(everyOp()), wire.Marshal(textProgram()), wire.Marshal(partsOfTexts())} {
		sections := le.Uint32(b[12:])
		from := wire.HeaderSize
		for range sections {
			id, size := le.Uint16(b[from:]), int(le.Uint64(b[from+8:])+7)/8*8
			to := from + 16 + size
			without := append(bytes.Clone(b[:from]), b[to:]...)
			le.PutUint32(without[12:], sections-1)
			_, err := operator.Unmarshal(reseal(without))
			if id <= 4 {
				assert.ErrorIs(t, err, wire.ErrCorrupt, "section %d", id)
			}
			from = to
		}
		assert.Len(t, b, from)
	}
}

// appended returns the text program with one more section.
func appended(id, flags uint16) []byte {
	b := wire.Marshal(textProgram())
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
		b := wire.Marshal(textProgram())
		b[8]++
		_, err := operator.Unmarshal(reseal(b))
		require.ErrorIs(t, err, wire.ErrVersion)
		assert.EqualError(t, err, "program: unsupported version 2.0, want 1.x")
	})
	t.Run("another minor version", func(t *testing.T) {
		b := wire.Marshal(textProgram())
		b[10] = 9
		_, err := operator.Unmarshal(reseal(b))
		require.NoError(t, err)
	})
	t.Run("an unknown section that is not required", func(t *testing.T) {
		p, err := operator.Unmarshal(appended(77, 0))
		require.NoError(t, err)
		assert.Equal(t, textProgram(), p)
	})
	t.Run("an unknown section that is required", func(t *testing.T) {
		_, err := operator.Unmarshal(appended(77, 1))
		require.ErrorIs(t, err, wire.ErrUnknown)
		var unknown *wire.UnknownError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, uint16(77), unknown.Section)
		assert.EqualError(t, err, "program: section 77 is unknown and required")
	})
	op := bytes.Index(wire.Marshal(textProgram()), []byte{byte(positivemodulus.Unit), 0, 1, 0, 8, 0, 0, 0})
	require.Positive(t, op)
	t.Run("an unknown unit", func(t *testing.T) {
		b := wire.Marshal(textProgram())
		b[op+1] = 3
		_, err := operator.Unmarshal(reseal(b))
		require.ErrorIs(t, err, wire.ErrUnknown)
		assert.EqualError(t, err, "program: unit 774 (version 1) is unknown and required")
	})
	t.Run("an unknown version of a unit", func(t *testing.T) {
		b := wire.Marshal(textProgram())
		b[op+2] = 4
		_, err := operator.Unmarshal(reseal(b))
		var unknown *wire.UnknownError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, wire.UnknownError{Unit: positivemodulus.Unit, Version: 4}, *unknown)
		assert.EqualError(t, err,
			"program: version 4 of unit positive_modulus is unknown and required; this build has version 1")
	})
	t.Run("a decoding unit is not an operator", func(t *testing.T) {
		b := wire.Marshal(textProgram())
		b[op] = byte(program.UnitText)
		_, err := operator.Unmarshal(reseal(b))
		require.ErrorIs(t, err, wire.ErrUnknown)
	})
}

func TestProgramDamage(t *testing.T) {
	good := wire.Marshal(everyOp())
	t.Run("every truncation", func(t *testing.T) {
		for n := range good {
			_, err := operator.Unmarshal(good[:n:n])
			require.ErrorIs(t, err, wire.ErrCorrupt, "%d bytes", n)
		}
	})
	t.Run("every flipped bit", func(t *testing.T) {
		b := bytes.Clone(good)
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			_, err := operator.Unmarshal(b)
			require.Error(t, err, "bit %d", i)
			b[i/8] ^= 1 << (i % 8)
		}
	})
	t.Run("bytes behind", func(t *testing.T) {
		_, err := operator.Unmarshal(append(bytes.Clone(good), 0))
		require.ErrorIs(t, err, wire.ErrCorrupt)
		_, err = operator.Unmarshal(reseal(append(bytes.Clone(good), 0, 0, 0, 0, 0, 0, 0, 0)))
		require.ErrorIs(t, err, wire.ErrCorrupt)
	})
	t.Run("empty", func(t *testing.T) {
		_, err := operator.Unmarshal(nil)
		require.ErrorIs(t, err, wire.ErrCorrupt)
	})
}

// TestProgramHostileCounts checks that a count far above what the bytes can hold is refused before memory is
// allocated for it.
func TestProgramHostileCounts(t *testing.T) {
	b := wire.Marshal(textProgram())
	at := wire.HeaderSize + wire.SectionSize + wire.SourceSize // the section of tables
	le.PutUint32(b[at+wire.SectionSize:], 1<<17)
	allocs := testing.Benchmark(func(tb *testing.B) {
		for range tb.N {
			_, _ = operator.Unmarshal(reseal(b))
		}
	})
	_, err := operator.Unmarshal(b)
	require.ErrorIs(t, err, wire.ErrCorrupt)
	assert.Less(t, allocs.AllocedBytesPerOp(), int64(64<<10))
}

func TestUnits(t *testing.T) {
	assert.Equal(
		t,
		[]program.UnitRef{
			{Unit: fillnull.Unit, Version: 1}, {Unit: positivemodulus.Unit, Version: 1},
			{Unit: convert.Unit, Version: 1}, {Unit: program.UnitText, Version: 1},
		},
		textProgram().Units(),
	)
	known := program.Known()
	for _, ref := range everyOp().Units() {
		assert.Contains(t, known, ref)
	}
	assert.Len(t, everyOp().Units(), 11, "ten operators and the decoding unit")
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
		"list<int64>", "clamp min 0 max 99", "bucketize borders float32 [0.5 1 1.5] side left nan torcharrow", "log 1",
		"bucketize borders int64 [-1 1099511627776] side right", "hex_to_int", "zero_extend", "firstx 3",
		"sigrid_hash salt -7 max 500000",
	} {
		assert.Contains(t, all, s)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(appended(77, 0))
	for _, form := range forms {
		f.Add(wire.Marshal(form.program()))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= wire.HeaderSize {
			b = reseal(bytes.Clone(b)) // else the fuzzer would never get past the checksum
		}
		p, err := operator.Unmarshal(b)
		if err != nil {
			return
		}
		_ = p.String()
		_ = p.Units()
		q, err := operator.Unmarshal(wire.Marshal(p))
		require.NoError(t, err)
		require.Equal(t, wire.Marshal(p), wire.Marshal(q))
	})
}
