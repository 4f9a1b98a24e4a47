package sdk_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/tensor"
)

// criteo is a program over Criteo rows: all dense features, two keys of fixed length, unless malformed rows may be null
// or ids are kept null.
func criteo(source program.Source, m program.Malformed) (*program.Program, *tensor.Schema) {
	p := &program.Program{
		Source: source, Label: true, Malformed: m,
		Output: program.Output{Label: true, Dense: text.Dense, Keys: 2},
	}
	s := &tensor.Schema{
		Label: true, IDs: tensor.Int64,
		Keys: []tensor.Key{{Name: "cat_0", List: true}, {Name: "cat_1", List: true}},
	}
	for i := range 2 {
		ops := []program.Op{program.SigridHash{Max: 1000}}
		p.Columns = append(p.Columns, program.Column{
			Name: fmt.Sprintf("cat_%d", i), Field: uint16(14 + i), Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Index: uint32(i), Ops: ops}},
		})
	}
	for i := range text.Dense {
		ops := []program.Op{program.FillNull{}, program.Convert{To: program.Float32}}
		p.Columns = append(p.Columns, program.Column{
			Name: fmt.Sprintf("int_%d", i), Field: uint16(1 + i), Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToDense, Index: uint32(i), Ops: ops}},
		})
		s.Dense = append(s.Dense, fmt.Sprintf("int_%d", i))
	}
	p.Columns = append(p.Columns, program.Column{Name: "label", Kind: program.Int64, Sinks: []program.Sink{
		{To: program.ToLabel, Ops: []program.Op{program.FillNull{}, program.Convert{To: program.Float32}}}}})
	return p, s
}

// lines are rows of text; one in bad is malformed.
func lines(n, bad int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	var b bytes.Buffer
	for i := range n {
		if bad > 0 && i%bad == bad-1 {
			b.WriteString("1\tnot a row\n")
		}
		if i%41 == 40 {
			b.WriteByte('\n') // an empty line is no row
		}
		fmt.Fprintf(&b, "%d", rng.IntN(2))
		for range text.Dense {
			b.WriteByte('\t')
			if rng.IntN(4) > 0 {
				fmt.Fprint(&b, rng.IntN(2000)-100)
			}
		}
		for range text.Sparse {
			b.WriteByte('\t')
			if rng.IntN(5) > 0 {
				fmt.Fprintf(&b, "%08x", rng.Uint32())
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func binaryRows(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 4))
	var b []byte
	for range n * text.BinaryRow / 4 {
		b = binary.LittleEndian.AppendUint32(b, rng.Uint32N(100000))
	}
	return b
}

func openText(t testing.TB, data []byte, source program.Source, o partition.Options) *partition.Partition {
	p, err := partition.Open(context.Background(), "day_0", bytes.NewReader(data), int64(len(data)), source, o)
	require.NoError(t, err)
	return p
}

// TestTextAgrees runs text and binary rows from many first rows, from memory and from a device, with little memory.
func TestTextAgrees(t *testing.T) {
	for _, c := range []struct {
		name   string
		source program.Source
		policy program.Malformed
		data   []byte
	}{
		{"text", program.CriteoTSV, program.MalformedFail, lines(1200, 0)},
		{"text without a last newline", program.CriteoTSV, program.MalformedFail, bytes.TrimRight(lines(1200, 0), "\n")},
		{"malformed rows dropped", program.CriteoTSV, program.MalformedDrop, lines(1000, 7)},
		{"malformed rows null", program.CriteoTSV, program.MalformedNull, lines(1000, 11)},
		{"binary", program.CriteoBinary, program.MalformedFail, binaryRows(1200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog, schema := criteo(c.source, c.policy)
			o := partition.Options{Text: text.Options{Policy: text.Policy(c.policy)}, Every: 100, Bytes: c.data}
			whole := openText(t, c.data, c.source, o)
			require.GreaterOrEqual(t, whole.Rows, int64(1000))
			firsts := []int64{0, 99, 834, whole.Rows - 1}
			if raced {
				firsts = firsts[1:3]
			}
			for _, first := range firsts {
				for _, batch := range []int{1, 300} {
					rows := min(whole.Rows-first, int64(3*batch))
					run := processor.Run{Partition: whole, First: first, Rows: rows, Batch: batch}
					want := truth(t, prog, schema, run)
					same(t, want, all(t, onCPU(t, prog, schema, processor.Options{SLM: 2 << 20}), run), "in memory", first, batch)

					f := newFlash(120<<10, 512)
					o := o
					o.Bytes, o.Extents = nil, f.put(rand.New(rand.NewPCG(1, 1)), c.data, 0, 3)
					run.Partition = openText(t, c.data, c.source, o)
					got, err := collect(f.start(t, prog, schema, processor.Options{Streams: 1}), run)
					if slm := (*slicer.MemoryError)(nil); batch == 300 && errors.As(err, &slm) {
						assert.Equal(t, -1, slm.RowGroup)
						continue
					}
					require.NoError(t, err)
					same(t, want, got, "on a device", first, batch)
				}
			}
		})
	}
}

// TestRealRows runs rows of Criteo's as they were published.
func TestRealRows(t *testing.T) {
	data, err := os.ReadFile(shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"))
	require.NoError(t, err)
	prog, schema := criteo(program.CriteoTSV, program.MalformedFail)
	run := processor.Run{Partition: openText(t, data, program.CriteoTSV, partition.Options{Bytes: data}), Batch: 512}
	run.Rows = run.Partition.Rows
	assert.Equal(t, int64(3000), run.Rows)
	same(t, truth(t, prog, schema, run), all(t, onCPU(t, prog, schema, processor.Options{SLM: 8 << 20}), run))
}

// TestTextErrors looks at what a text partition is refused for.
func TestTextErrors(t *testing.T) {
	ctx := context.Background()
	bad := lines(50, 10)
	_, err := partition.Open(ctx, "day_0", bytes.NewReader(bad), int64(len(bad)), program.CriteoTSV, partition.Options{})
	require.ErrorIs(t, err, partition.ErrUnreadable)
	require.ErrorIs(t, err, text.ErrFieldCount)
	var row *text.RowError
	require.ErrorAs(t, err, &row)
	assert.Equal(t, int64(10), row.Line)

	part := openText(t, bad, program.CriteoTSV, partition.Options{Text: text.Options{Policy: text.Drop}, Bytes: bad})
	assert.Equal(t, int64(50), part.Rows)
	assert.Equal(t, int64(5), part.Index.Dropped)
	assert.Equal(t, sha256.Sum256(bad), [32]byte(part.Describe().Footer))
	assert.Equal(t, []int64{50}, part.Describe().RowGroups)

	// Indexed one way and read another: rows would have other numbers.
	prog, schema := criteo(program.CriteoTSV, program.MalformedFail)
	p := onCPU(t, prog, schema, processor.Options{SLM: 2 << 20})
	_, err = p.Open(ctx, processor.Run{Partition: part, Rows: 10, Batch: 10})
	require.ErrorIs(t, err, partition.ErrSchema)

	// A file that changed after it was indexed.
	good := lines(50, 0)
	part = openText(t, good, program.CriteoTSV, partition.Options{Bytes: good})
	copy(good[len(good)/2:], "xyz\n")
	_, err = collect(p, processor.Run{Partition: part, Rows: 50, Batch: 10})
	var data *partition.DataError
	require.ErrorAs(t, err, &data)
	assert.ErrorIs(t, err, partition.ErrData)
	assert.Positive(t, data.Line)

	rows := binaryRows(3)
	_, err = partition.Open(ctx, "day_0", bytes.NewReader(rows), int64(len(rows)-1), program.CriteoBinary,
		partition.Options{})
	require.ErrorIs(t, err, text.ErrPartialRow)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = partition.Open(ended, "day_0", bytes.NewReader(rows), int64(len(rows)), program.CriteoBinary,
		partition.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
