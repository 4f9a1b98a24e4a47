package local

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// annotatedSchema is a file of times, decimals and FLOAT16 as strangers write them.
var annotatedSchema = pq.NewSchema("annotated", pq.Group{
	"millis": pq.Optional(pq.Timestamp(pq.Millisecond)),
	"micros": pq.Encoded(pq.Timestamp(pq.Microsecond), &pq.DeltaBinaryPacked),
	"nanos":  pq.Timestamp(pq.Nanosecond),
	"date":   pq.Date(),
	"noon":   pq.Time(pq.Microsecond),
	"int96":  pq.Optional(pq.Encoded(pq.Leaf(pq.Int96Type), &pq.RLEDictionary)),
	"cents":  pq.Decimal(2, 9, pq.Int32Type),
	"wide":   pq.Optional(pq.Decimal(10, 38, pq.FixedLenByteArrayType(16))),
	"bytes":  pq.Decimal(1, 20, pq.ByteArrayType),
	"epoch":  pq.Leaf(pq.Int64Type),
})

// TestAnnotatedColumnsAreTheSameOnEveryEngine draws a file of times and decimals, and compares what every engine makes
// of them with package time and with rational numbers.
func TestAnnotatedColumnsAreTheSameOnEveryEngine(t *testing.T) {
	const rows = 200
	rng := rand.New(rand.NewPCG(12, 96))
	columns := annotatedSchema.Columns()
	index := map[string]int{}
	for i, path := range columns {
		index[path[0]] = i
	}
	seconds := map[string][]int64{} // of each key
	var dense []float32
	var b bytes.Buffer
	w := pq.NewWriter(&b, annotatedSchema)
	for range rows {
		row := make(pq.Row, len(columns))
		set := func(name string, v pq.Value, definition int) {
			row[index[name]] = v.Level(0, definition, index[name])
		}
		at := time.Unix(rng.Int64N(1<<33)-1<<32, rng.Int64N(1e9)).UTC()
		midnight := at.Truncate(24 * time.Hour)
		day := int64(math.Floor(float64(at.Unix()) / 86400))
		if rng.IntN(4) > 0 {
			set("millis", pq.Int64Value(at.UnixMilli()), 1)
			seconds["millis"] = append(seconds["millis"], at.Unix())
			clock := at.Sub(midnight).Nanoseconds()
			stamp := deprecated.Int96{uint32(clock), uint32(clock >> 32), uint32(midnight.Unix()/86400 + 2440588)}
			set("int96", pq.Int96Value(stamp), 1)
			seconds["int96"] = append(seconds["int96"], at.Unix())
		} else {
			set("millis", pq.NullValue(), 0)
			set("int96", pq.NullValue(), 0)
		}
		set("micros", pq.Int64Value(at.UnixMicro()), 0)
		set("nanos", pq.Int64Value(at.UnixNano()), 0)
		set("date", pq.Int32Value(int32(day)), 0)
		set("noon", pq.Int64Value(at.Sub(midnight).Microseconds()), 0)
		set("epoch", pq.Int64Value(at.UnixMilli()), 0)
		seconds["micros"], seconds["nanos"] = append(seconds["micros"], at.Unix()), append(seconds["nanos"], day)
		seconds["date"] = append(seconds["date"], midnight.Unix())
		seconds["noon"] = append(seconds["noon"], int64(at.Sub(midnight)/time.Second))
		seconds["epoch"] = append(seconds["epoch"], at.Unix())

		cents := rng.Int32() >> rng.IntN(31)
		set("cents", pq.Int32Value(cents), 0)
		scaled := func(n *big.Int, scale int64) float32 {
			x, _ := new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)).Float32()
			return x
		}
		dense = append(dense, scaled(big.NewInt(int64(cents)), 2))
		wide := new(big.Int).Mul(big.NewInt(rng.Int64()-1<<62), big.NewInt(rng.Int64()>>rng.IntN(62)))
		if rng.IntN(4) > 0 {
			value := make([]byte, 16)
			new(big.Int).And(wide, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))).FillBytes(value)
			set("wide", pq.FixedLenByteArrayValue(value), 1)
			dense = append(dense, scaled(wide, 10))
		} else {
			set("wide", pq.NullValue(), 0)
			dense = append(dense, -1)
		}
		unscaled := rng.Int64() - 1<<62
		set("bytes", pq.ByteArrayValue(binary.BigEndian.AppendUint64(nil, uint64(unscaled))), 0)
		dense = append(dense, scaled(big.NewInt(unscaled), 1))
		seconds["bytes"] = append(seconds["bytes"], unscaled)
		_, err := w.WriteRows([]pq.Row{row})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "annotated.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	spec, err := pipeline.Parse([]byte(`dense:
  - {columns: [cents], ops: [decimal: float32]}
  - {columns: [wide], ops: [decimal: float32, fill_null: -1]}
  - {columns: [bytes], ops: [decimal: float32]}
sparse:
  - {columns: [millis, int96, micros], ops: [to_seconds]}
  - {columns: [nanos], ops: [to_days]}
  - {columns: [date, noon], ops: [to_seconds]}
  - {columns: [epoch], ops: [to_seconds: {unit: millis}]}
  - {columns: [bytes], ops: [decimal: int64]}
`))
	require.NoError(t, err)
	onEveryEngine(t, path, program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		require.Equal(t, rows, mb.Rows)
		assert.Equal(t, dense, append([]float32{}, mb.Dense...))
		offsets := mb.OffsetPerKey()
		for key, name := range []string{"millis", "int96", "micros", "nanos", "date", "noon", "epoch", "bytes"} {
			assert.Equal(t, seconds[name], append([]int64{}, mb.Values64[offsets[key]:offsets[key+1]]...), name)
		}
	})
}

// embeddingRow is a row of lists of real numbers.
type embeddingRow struct {
	Embedding []float32 `parquet:"embedding,list"`
	Short     []float64 `parquet:"short,list"`
	ID        int64     `parquet:"id"`
}

// TestDenseListsAreTheSameOnEveryEngine makes dense columns of lists, beside a key with and without lengths, in both
// types of dense; and a list of another length fails with its row.
func TestDenseListsAreTheSameOnEveryEngine(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 64))
	rows := make([]embeddingRow, 300)
	var dense []float32
	for i := range rows {
		rows[i].ID = int64(i)
		want := make([]float32, 19)
		for j := range 16 {
			want[j] = rng.Float32()
		}
		rows[i].Embedding = want[:16:16]
		for j := range 3 {
			want[16+j] = -2
			if j < i%4 {
				want[16+j] = float32(i + j)
				rows[i].Short = append(rows[i].Short, float64(i+j))
			}
		}
		dense = append(dense, want...)
	}
	path := filepath.Join(t.TempDir(), "embeddings.parquet")
	write := func(rows []embeddingRow) {
		var b bytes.Buffer
		require.NoError(t, pq.Write(&b, rows, pq.MaxRowsPerRowGroup(77)))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	write(rows)
	const document = `dense:
  - {columns: [embedding], ops: [fixed_length: {length: 16}]}
  - {columns: [short], ops: [fixed_length: {length: 3, pad: -2}]}
sparse:
  - {columns: [id]}
`
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	onEveryEngine(t, path, program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		assert.Equal(t, dense, append([]float32{}, mb.Dense...))
		assert.Len(t, mb.Values64, len(rows))
	})
	spec, err = pipeline.Parse([]byte("dense_type: bfloat16\n" + document +
		"  - {columns: [short], as: buckets, ops: [bucketize: {borders: [100]}]}\n"))
	require.NoError(t, err)
	onEveryEngine(t, path, program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		require.Len(t, mb.Dense16, len(dense))
		for i, x := range dense {
			require.Equal(t, bfloat16.Round(x), mb.Dense16[i])
		}
	})

	rows[200].Embedding = rows[200].Embedding[:15]
	write(rows)
	spec, err = pipeline.Parse([]byte(document))
	require.NoError(t, err)
	for _, engine := range paperEngines {
		m, err := Open(t.Context(), Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine,
			Source: program.Parquet, SLM: 64 << 20}})
		require.NoError(t, err)
		j, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone,
			Order: dataset.Deterministic, AllDrives: true})
		if err == nil {
			for _, err = range j.MiniBatches(t.Context()) {
				if err != nil {
					break
				}
			}
			_ = j.Close() // the job has failed
		}
		require.NoError(t, m.Close())
		require.ErrorIs(t, err, partition.ErrData, "engine %q", engine)
		require.ErrorContains(t, err, "embedding")
		require.ErrorContains(t, err, "a list of length 15, want 16")
		require.ErrorContains(t, err, "200")
	}
}
