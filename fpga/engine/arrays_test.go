package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/fixedlength"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/unpack"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// arrayProgram unpacks a column of arrays: each becomes dense columns, twice, and the buckets of its numbers.
func arrayProgram(fixed fixedlength.Op, denseType program.DenseType) *program.Program {
	return &program.Program{
		Source:  program.Parquet,
		Columns: []program.Column{{Name: "e", Kind: program.Bytes, Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Combine: unpack.Op{Type: unpack.Float32}}},
			Sinks: []program.GraphSink{
				{Value: 1, Sink: program.Sink{To: program.ToSparse, Ops: []program.Op{
					&bucketize.Op{Borders32: []float32{0, 1, 2}}}}},
				{Value: 1, Sink: program.Sink{To: program.ToDense, Index: fixed.Length, Ops: []program.Op{
					log.Op{Add: 9}, fixed}}},
				{Value: 1, Sink: program.Sink{To: program.ToDense, Ops: []program.Op{fixed},
					Refuses: program.RefusesNaN}},
			},
		}},
		Output: program.Output{Keys: 1, Dense: 2 * fixed.Length, DenseType: denseType},
	}
}

// arrayColumn returns a column whose row r is the array of numbers that of returns, or a null.
func arrayColumn(rows int, of func(r int) []float32) testColumn {
	c := testColumn{name: "e", physical: format.ByteArray, optional: true}
	for r := range rows {
		numbers := of(r)
		if numbers == nil {
			c.rows = append(c.rows, nil)
			continue
		}
		value := []byte{}
		for _, x := range numbers {
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(x))
		}
		c.rows = append(c.rows, value)
	}
	return c
}

// TestArrays compares mini-batches of arrays with those of the reference: nulls, empty arrays, and arrays that are
// longer than a block, over row groups, pages and blocks of several sizes.
func TestArrays(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			longest := []int{1, 5, 300}[rng.IntN(3)]
			column := arrayColumn(40, func(int) []float32 {
				if rng.IntN(5) == 0 {
					return nil
				}
				numbers := make([]float32, rng.IntN(longest+1))
				for i := range numbers {
					numbers[i] = float32(rng.NormFloat64())
				}
				return numbers
			})
			if seed%2 == 0 {
				column.encoding = "dictionary"
			}
			data := writeFile(t, []testColumn{column}, layout{groupRows: 16, batchRows: 8, pageBytes: 1 << rng.IntN(12),
				version: 1 + rng.IntN(2)})
			f := readFooter(t, data)
			p := arrayProgram(fixedlength.Op{Length: uint32(longest), Pads: true, Pad: -1},
				program.DenseType(rng.IntN(2)))
			require.NoError(t, p.Validate())
			ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			h := newHost(engine.New(engine.Options{BlockRows: 1 + rng.IntN(9)}), p, f, data, 1)
			for first := int64(0); first < 40; first += 13 {
				rows := min(13, 40-int(first))
				want, err := ref.MiniBatch(first, rows)
				require.NoError(t, err)
				got, err := h.miniBatch(first, rows)
				require.NoError(t, err)
				requireSame(t, want, got)
			}
		})
	}
}

// TestArraysThatAreRefused checks that a row whose bytes are not the wanted array fails, with its row.
func TestArraysThatAreRefused(t *testing.T) {
	good := func(r int) []float32 { return []float32{float32(r), 2} }
	exact := fixedlength.Op{Length: 2}
	for name, c := range map[string]struct {
		row     any
		options engine.Options
		state   program.State
		want    string
	}{
		"a byte too many": {[]byte("12345678."), engine.Options{BlockRows: 3}, program.BadData,
			"row 5 of the mini-batch: unpack: a value of 9 bytes: want a multiple of 4"},
		"a file of NumPy": {[]byte("\x93NUMPY\x01\x00"), engine.Options{BlockRows: 3}, program.BadData,
			"row 5 of the mini-batch: unpack: a value of 8 bytes: begins as a file of NumPy"},
		"another length": {[]byte("1234"), engine.Options{BlockRows: 3}, program.BadData,
			"row 5 of the mini-batch has a list of length 1, want 2"},
		"a null": {nil, engine.Options{BlockRows: 3}, program.BadData,
			"row 5 of the mini-batch has a list of length 0, want 2"},
		"a NaN": {[]byte("\x00\x00\xc0\x7f1234"), engine.Options{}, program.BadData,
			"dense column 0 of row 5 of the mini-batch is a NaN"},
		"too many numbers": {make([]byte, 4000), engine.Options{MaxList: 100}, program.NoSupport,
			"a row of a graph with 1001 values, want at most 400"},
	} {
		t.Run(name, func(t *testing.T) {
			column := arrayColumn(10, good)
			column.rows[7] = c.row
			data := writeFile(t, []testColumn{column}, layout{groupRows: 10, batchRows: 10, pageBytes: 64, version: 1})
			h := newHost(engine.New(c.options), arrayProgram(exact, program.DenseFloat32), readFooter(t, data), data, 1)
			_, err := h.miniBatch(2, 8)
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.state, bad.state)
			require.Contains(t, bad.message, c.want)
		})
	}
}
