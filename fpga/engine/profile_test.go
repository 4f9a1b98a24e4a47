package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// TestMeasure checks that every operator of a slice is timed, and that the result states the units' times.
func TestMeasure(t *testing.T) {
	const rows, sparse, dense, generated, block = 300, 3, 4, 2, 128
	blocks := uint64((rows + block - 1) / block)
	data, p := benchmarkProgram(t, rows, dense, sparse, generated, 64, false, "snappy", "dictionary")
	e := engine.New(engine.Options{BlockRows: block})
	b := newSliceRunner(t, e, data, p, rows)
	b.args = wire.AppendSlice(nil, &b.slice)
	profile := profile.Profile{program.UnitText: {Runs: 9}}
	require.Equal(t, program.Done, e.Measure(context.Background(), b.mem, b.args, &profile))
	r, err := wire.UnmarshalResult(b.mem.Result)
	require.NoError(t, err)

	for unit, columns := range map[program.Unit]uint64{
		sigridhash.Unit: sparse + generated, bucketize.Unit: generated, log.Unit: dense,
		fillnull.Unit: sparse + dense + generated, clamp.Unit: dense,
		convert.Unit: dense + generated + 1,
	} {
		u := profile[unit]
		assert.Equal(t, columns*blocks, u.Runs, unit)
		assert.Equal(t, columns*rows, u.Values, unit)
		assert.LessOrEqual(t, u.Shortest*u.Runs, u.Total, unit)
		assert.LessOrEqual(t, u.Total, u.Longest*u.Runs, unit)
	}
	assert.Zero(t, profile[program.UnitText], "of an earlier slice nothing stays")
	assert.Zero(t, profile[firstx.Unit])
	parquet := profile[program.UnitParquet]
	assert.Equal(t, r.Decode, parquet.Total)
	assert.GreaterOrEqual(t, parquet.Runs, (sparse+dense+1)*blocks)
	assert.GreaterOrEqual(t, parquet.Values, uint64((sparse+dense+1)*rows))
	var operators uint64
	for unit, u := range profile {
		if program.Unit(unit) != program.UnitParquet {
			operators += u.Total
		}
	}
	assert.Positive(t, operators)
	assert.LessOrEqual(t, operators, r.Transform, "the tensors' writing is the rest")
}

// TestOperatorsWithoutAPass checks that two operators cost no pass over the values: a fill_null where nulls hold the
// value already, and a clamp before a log.
func TestOperatorsWithoutAPass(t *testing.T) {
	const rows, dense = 300, 4
	data, p := benchmarkProgram(t, rows, dense, 3, 2, 64, true, "", "")
	b := newSliceRunner(t, engine.New(engine.Options{}), data, p, rows)
	b.args = wire.AppendSlice(nil, &b.slice)
	var profile profile.Profile
	require.Equal(t, program.Done, b.e.Measure(context.Background(), b.mem, b.args, &profile))
	for _, unit := range []program.Unit{fillnull.Unit, clamp.Unit} {
		assert.GreaterOrEqual(t, profile[unit].Values, uint64(dense*rows), unit)
		assert.Zero(t, profile[unit].Total, unit)
	}
}

// TestTheDecoderCountsLengthsAndBytes: of lists and scalars, in the types of the file, however they are encoded.
func TestTheDecoderCountsLengthsAndBytes(t *testing.T) {
	const rows, sparse, dense = 300, 3, 4
	for _, encoding := range []string{"plain", "dictionary"} {
		for _, lists := range []bool{false, true} {
			data, p := benchmarkProgram(t, rows, dense, sparse, 0, 64, lists, "snappy", encoding)
			e := engine.New(engine.Options{})
			b := newSliceRunner(t, e, data, p, rows)
			b.args = wire.AppendSlice(nil, &b.slice)
			var profile profile.Profile
			require.Equal(t, program.Done, e.Measure(context.Background(), b.mem, b.args, &profile))
			r, err := wire.UnmarshalResult(b.mem.Result)
			require.NoError(t, err)
			ids, lengths := uint64(sparse*rows), uint64(0)
			if lists {
				ids, lengths = r.Values, sparse*rows
				require.Greater(t, ids, uint64(rows))
			}
			parquet := profile[program.UnitParquet]
			assert.Equal(t, lengths, parquet.Lengths, "lists %v", lists)
			assert.Equal(t, 8*ids+4*lengths+4*(dense+1)*rows, parquet.Bytes, "lists %v, and a label", lists)
		}
	}
}
