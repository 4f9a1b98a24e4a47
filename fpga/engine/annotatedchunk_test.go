package engine_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// dayAsInt96 returns a time as INT96: days after 1970, and nanoseconds of the day.
func dayAsInt96(day uint32, nanos uint64) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, nanos), 2440588+day)
}

// TestChunksReadByAnnotations checks the values that the reference and the engine read from chunks of every unit, scale
// and storage.
func TestChunksReadByAnnotations(t *testing.T) {
	const values, seconds = program.ReadValues, program.ReadSeconds
	for name, c := range map[string]struct {
		physical format.Type
		logical  string
		unsigned int
		list     bool
		rows     []any
		reading  program.Reading
		to       program.Kind
		dense    []float32 // one value for each row; nulls are filled with 7
		ids      []int64   // the ids of all rows
		fails    string
	}{
		"int32 decimal": {physical: format.Int32, logical: "DECIMAL(9, 2)", rows: []any{int64(150), nil, int64(-1)},
			reading: values, to: program.Float32, dense: []float32{1.5, 7, -0.01}},
		"int64 decimal, double": {physical: format.Int64, logical: "DECIMAL(18, 3)",
			rows:    []any{int64(1500), nil, int64(-5)},
			reading: values, to: program.Float64, dense: []float32{1.5, 7, -0.005}},
		"fixed decimal": {physical: format.FixedLenByteArray, logical: "DECIMAL(4, 1)", rows: []any{[]byte{0, 15}, nil,
			[]byte{255, 251}}, reading: values, to: program.Float32, dense: []float32{1.5, 7, -0.5}},
		"byte array decimal": {physical: format.ByteArray, logical: "DECIMAL(30, 0)", rows: []any{[]byte{2}, nil,
			[]byte{1, 0, 0}}, reading: values, to: program.Float64, dense: []float32{2, 7, 65536}},
		"decimals as ids": {physical: format.ByteArray, logical: "DECIMAL(30, 2)", rows: []any{[]byte{0, 150}, nil,
			[]byte{255}}, reading: values, to: program.Int64, ids: []int64{150, -1}},
		"int decimals as ids": {physical: format.Int32, logical: "DECIMAL(9, 2)",
			rows: []any{int64(150), nil, int64(-1)}, reading: values, to: program.Int64, ids: []int64{150, -1}},
		"integers in dense": {physical: format.Int64, rows: []any{int64(1)<<53 + 3, nil, int64(-4)}, reading: values,
			to: program.Float32, dense: []float32{1 << 53, 7, -4}},
		"uint64 in dense": {physical: format.Int64, unsigned: 64, rows: []any{int64(-1), nil, int64(4)},
			reading: values, to: program.Float32, dense: []float32{1 << 64, 7, 4}},
		"reals as ids": {physical: format.Double, rows: []any{float64(1<<53 - 1), nil, float64(-3)}, reading: values,
			to: program.Int64, ids: []int64{1<<53 - 1, -3}},
		"float32 as ids": {physical: format.Float, rows: []any{float32(5), nil, float32(-3)}, reading: values,
			to: program.Int64, ids: []int64{5, -3}},
		"a real of 2^53": {physical: format.Double, rows: []any{1.0, 2.0, float64(1 << 53)}, reading: values,
			to: program.Int64, fails: "9.007199254740992e+15"},
		"a fraction": {physical: format.Double, rows: []any{1.0, nil, 2.5}, reading: values, to: program.Int64,
			fails: "2.5"},
		"a list with a fraction": {physical: format.Double, list: true, rows: []any{[]any{1.0, 2.0}, []any{},
			[]any{3.0, 2.5}}, reading: values, to: program.Int64, fails: "2.5"},
		"lists of reals as ids": {physical: format.Double, list: true,
			rows:    []any{[]any{1.0, 2.0}, []any{}, []any{3.0}},
			reading: values, to: program.Int64, ids: []int64{1, 2, 3}},
		"millis": {physical: format.Int64, logical: "TIMESTAMP(MILLIS)", rows: []any{int64(1999), nil, int64(-1)},
			reading: seconds, to: program.Int64, ids: []int64{1, -1}},
		"micros": {physical: format.Int64, logical: "TIMESTAMP(MICROS)", rows: []any{int64(1_999_999), nil, int64(-1)},
			reading: seconds, to: program.Int64, ids: []int64{1, -1}},
		"nanos": {physical: format.Int64, logical: "TIMESTAMP(NANOS)",
			rows:    []any{int64(1_999_999_999), nil, int64(-1)},
			reading: seconds, to: program.Int64, ids: []int64{1, -1}},
		"days": {physical: format.Int32, logical: "DATE", rows: []any{int64(2), nil, int64(-1)}, reading: seconds,
			to: program.Int64, ids: []int64{172800, -86400}},
		"INT96": {physical: format.Int96, rows: []any{dayAsInt96(1, 1e9), nil, dayAsInt96(0, 5)}, reading: seconds,
			to: program.Int64, ids: []int64{86401, 0}},
		"null lists of bytes": {physical: format.Int32, logical: "UNKNOWN", list: true,
			rows: []any{[]any{nil}, []any{}, []any{nil, nil}}, reading: values, to: program.Bytes,
			ids: []int64{3, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			col := testColumn{name: "c", physical: c.physical, optional: true, list: c.list, elements: c.list,
				unsigned: c.unsigned, rows: c.rows}
			data := writeFile(t, []testColumn{col}, layout{groupRows: 10, batchRows: 10, pageBytes: 1 << 10,
				version: 1})
			f := readFooter(t, data)
			f.Leaves[0].Logical = c.logical
			column := program.Column{Name: "c", Kind: c.to, List: c.list, Reading: c.reading}
			p := &program.Program{Source: program.Parquet}
			want := &reference.Tensors{Rows: len(c.rows), Dense: []float32{}, Lengths: []int32{}}
			switch {
			case c.dense != nil:
				column.Sinks = []program.Sink{{To: program.ToDense, Ops: []program.Op{fillnull.Op{Float: 7}}}}
				if c.to == program.Float64 {
					column.Sinks[0].Ops = append(column.Sinks[0].Ops, convert.Op{To: program.Float32})
				}
				p.Output, want.Dense = program.Output{Dense: 1}, c.dense
			default:
				column.Sinks, p.Output = []program.Sink{{To: program.ToSparse}}, program.Output{Keys: 1}
				if c.to == program.Bytes {
					column.Sinks[0].Ops = []program.Op{hashbytes.Op{}, fillnull.Op{Int: 3}}
				}
				want.Values = c.ids
				for _, row := range c.rows {
					n := int32(1)
					if list, ok := row.([]any); ok {
						n = int32(len(list))
					} else if row == nil {
						n = 0
					}
					want.Lengths = append(want.Lengths, n)
				}
			}
			p.Columns = []program.Column{column}
			if c.to == program.Bytes { // hash_bytes empties a list that holds a null.
				want.Values, want.Lengths = nil, []int32{0, 0, 0}
			}
			if c.fails == "" {
				requireMiniBatch(t, p, f, data, want)
				return
			}
			ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			_, err = ref.MiniBatch(0, len(c.rows))
			require.ErrorIs(t, err, reference.ErrData)
			require.ErrorContains(t, err, c.fails)
			_, err = newHost(engine.New(engine.Options{}), p, f, data, 1).miniBatch(0, len(c.rows))
			require.ErrorContains(t, err, "row 2 of the mini-batch has the real number "+c.fails+", which is not an id")
		})
	}
}

// TestAnnotatedChunkRefused checks that a chunk is annotated only where the program reads annotations, and has a type
// that the reading takes.
func TestAnnotatedChunkRefused(t *testing.T) {
	b := smallRunner(t, "", "")
	b.slice.Tasks[0].Chunk.Annotation, b.slice.Tasks[0].Chunk.BitWidth = program.AnnotatedMillis, 0
	state, r := b.execute()
	assert.Equal(t, program.BadSlice, state)
	assert.Contains(t, r.Message, "the program reads chunks as they are stored")
}
