package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// lookingUp is a program with a lookup table of each form.
func lookingUp() *program.Program {
	p := &program.Program{
		Source: program.Parquet,
		LookupTables: []program.LookupTable{
			{Digest: program.TableDigest{1, 2}, Entries: 40, Keys: 7, Least: -3},
			{Digest: program.TableDigest{3}, Offset: 192, Hashed: true, Entries: 16, Keys: 8, Multiplier: 0x55, Probes: 4},
		},
		Output: program.Output{Keys: 3},
	}
	for i, o := range []vocabulary.Op{
		{Base: 9, Absent: vocabulary.AbsentBucket, Buckets: 9}, {Table: 1, Absent: vocabulary.AbsentRare, Rare: -2},
		{Table: 1, Base: 1 << 40},
	} {
		p.Columns = append(p.Columns, program.Column{Name: "c", Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{o}}}})
	}
	return p
}

func TestTablesOfLookups(t *testing.T) {
	p := lookingUp()
	b := wire.Marshal(p)
	assert.EqualValues(t, 192+16*16, p.TablesBytes())
	assert.Zero(t, hotColumns().TablesBytes())

	// What is at hand of the tables is not in the bytes.
	p.LookupTables[0].Stored, p.LookupTables[0].Listed = []byte{1}, []int64{1}
	assert.Equal(t, b, wire.Marshal(p))
}

// TestLookupsThatAreRefused checks every limit of lookups and tables from both sides.
func TestLookupsThatAreRefused(t *testing.T) {
	op := func(change func(o *vocabulary.Op)) func(p *program.Program) {
		return func(p *program.Program) {
			ops := p.Columns[0].Sinks[0].Ops
			o := ops[0].(vocabulary.Op)
			change(&o)
			ops[0] = o
		}
	}
	refused(t, lookingUp, whole, map[string]refusal[*program.Program]{
		"absent":          {op(func(o *vocabulary.Op) { o.Absent = 3 }), "3 is not a way to treat an absent key"},
		"base":            {op(func(o *vocabulary.Op) { o.Base = 1<<40 + 1 }), "base 1099511627777, want 0 to"},
		"a negative base": {op(func(o *vocabulary.Op) { o.Base = -1 }), "base -1, want 0 to"},
		"rare":            {op(func(o *vocabulary.Op) { o.Rare = 1 }), "rare id 1, and no key gets it"},
		"no bucket":       {op(func(o *vocabulary.Op) { o.Buckets = 0 }), "0 buckets below base 9"},
		"many buckets":    {op(func(o *vocabulary.Op) { o.Buckets = 10 }), "10 buckets below base 9"},
		"unused buckets": {op(func(o *vocabulary.Op) { o.Absent = vocabulary.AbsentFail }),
			"9 buckets, and no key gets one"},
		"another table":   {op(func(o *vocabulary.Op) { o.Table = 2 }), "lookup table 2 of 2"},
		"an unused table": {op(func(o *vocabulary.Op) { o.Table = 1 }), "nothing uses lookup table 0"},
		"floats":          {func(p *program.Program) { p.Columns[0].Kind = program.Float32 }, "does not take float32"},
		"keys":            {func(p *program.Program) { p.LookupTables[0].Keys = 41 }, "41 keys in 40 entries"},
		"entries":         {func(p *program.Program) { p.LookupTables[1].Entries = 1 << 28 }, "entries, want at most"},
		"end": {func(p *program.Program) { p.LookupTables[1].Offset = program.MaxLookupBytes &^ 63 },
			"and an end of at most"},
		"alignment":        {func(p *program.Program) { p.LookupTables[1].Offset = 200 }, "want a multiple of 64"},
		"one in the other": {func(p *program.Program) { p.LookupTables[1].Offset = 128 }, "from 160 on"},
		"two forms":        {func(p *program.Program) { p.LookupTables[0].Multiplier = 1 }, "an array and hashed"},
		"a least key":      {func(p *program.Program) { p.LookupTables[1].Least = 1 }, "an array and hashed"},
		"slots":            {func(p *program.Program) { p.LookupTables[1].Entries = 24 }, "want a power of two"},
		"an even number":   {func(p *program.Program) { p.LookupTables[1].Multiplier = 2 }, "the multiplier 0x2 is even"},
		"no probe":         {func(p *program.Program) { p.LookupTables[1].Probes = 0 }, "0 probes, want 1 to 1024"},
		"many probes":      {func(p *program.Program) { p.LookupTables[1].Probes = 1025 }, "1025 probes, want 1 to 1024"},
	})
	for _, change := range []func(p *program.Program){
		op(func(o *vocabulary.Op) { o.Base = 1 << 40 }),
		func(p *program.Program) { p.LookupTables[0].Keys = 40 },
		func(p *program.Program) { p.LookupTables[1].Probes = 1024 },
		func(p *program.Program) { p.LookupTables[0].Entries = 48 },
	} {
		p := lookingUp()
		change(p)
		require.NoError(t, p.Validate())
	}
}

// TestSliceAndResultOfLookups checks the wire forms that only programs with lookup tables need.
func TestSliceAndResultOfLookups(t *testing.T) {
	s := someSlice()
	s.TablesChecked = true
	goldenfile.Bytes(t, "testdata/slice.v1.5.hex", wire.MarshalSlice(s))
	again, err := wire.UnmarshalSlice(wire.MarshalSlice(s))
	require.NoError(t, err)
	assert.Equal(t, s, again)
	b := wire.MarshalSlice(s)
	b[60] = 2
	_, err = wire.UnmarshalSlice(b)
	require.ErrorIs(t, err, wire.ErrCorrupt)

	r := someResult()
	r.AbsentKey = program.AbsentKey{Given: true, Row: 17, Key: 18, Value: -19}
	goldenfile.Bytes(t, "testdata/result.v1.2.hex", wire.AppendResult(nil, r))
	got, err := wire.UnmarshalResult(wire.AppendResult(nil, r))
	require.NoError(t, err)
	assert.Equal(t, r, got)
	b = wire.AppendResult(nil, r)
	b[wire.AbsentOffset+16] = 0
	_, err = wire.UnmarshalResult(b)
	require.ErrorIs(t, err, wire.ErrCorrupt, "a key that is not given")
}
