package cpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// hashed is a pipeline over binary rows: int_0 as it is, cat_0 hashed into ten embeddings.
func hashed() (*program.Program, *tensor.Schema) {
	return &program.Program{
		Source: program.CriteoBinary, Label: true, Output: program.Output{Dense: 1, Keys: 1, Fixed: true},
		Columns: []program.Column{
			{Name: "cat_0", Field: 14, Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToSparse, Ops: []program.Op{sigridhash.Op{Max: 10}}}}},
			{Name: "int_0", Field: 1, Kind: program.Int64, Sinks: []program.Sink{
				{To: program.ToDense, Ops: []program.Op{convert.Op{To: program.Float32}}}}},
		},
	}, &tensor.Schema{Dense: []string{"int_0"}, IDs: tensor.Int64, Keys: []tensor.Key{{Name: "cat_0", NumEmbeddings: 10}}}
}

// rows are n binary rows whose fields count up.
func rows(n int) []byte {
	var b []byte
	for i := range n * text.BinaryRow / 4 {
		b = binary.LittleEndian.AppendUint32(b, uint32(i))
	}
	return b
}

func Example() {
	ctx := context.Background()
	data := rows(5)
	part, err := partition.Open(ctx, "day_0", bytes.NewReader(data), int64(len(data)), program.CriteoBinary,
		partition.Options{Bytes: data})
	if err != nil {
		fmt.Println(err)
		return
	}
	prog, schema := hashed()
	p, err := cpu.New(ctx, prog, schema, cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	s, err := p.Open(ctx, processor.Run{Partition: part, Rows: part.Rows, Batch: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for {
		m, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.Rows, m.Dense, m.Values64)
		m.Release()
	}
	// Output:
	// 2 [1 41] [3 7]
	// 2 [81 121] [5 0]
	// 1 [161] [4]
}

// short is a reader that ends early.
type short struct{ io.ReaderAt }

func (s short) ReadAt(b []byte, off int64) (int, error) {
	if off >= 800 {
		return 0, io.EOF
	}
	return s.ReaderAt.ReadAt(b, off)
}

// TestReadFails reads windows by a reader that was whole when the partition was opened and is not any more.
func TestReadFails(t *testing.T) {
	ctx := context.Background()
	data := rows(50)
	r := &struct{ io.ReaderAt }{bytes.NewReader(data)}
	part, err := partition.Open(ctx, "day_0", r, int64(len(data)), program.CriteoBinary, partition.Options{})
	require.NoError(t, err)
	r.ReaderAt = short{bytes.NewReader(data)}
	prog, schema := hashed()
	p, err := cpu.New(ctx, prog, schema, cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
	require.NoError(t, err)
	defer p.Close()
	s, err := p.Open(ctx, processor.Run{Partition: part, First: 10, Rows: 40, Batch: 10})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Next(ctx)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.ErrorContains(t, err, "day_0")
	_, again := s.Next(ctx)
	assert.Equal(t, err, again)
}

// TestReference keeps the reference to the contract of a Stream.
func TestReference(t *testing.T) {
	ctx := context.Background()
	data := rows(7)
	part, err := partition.Open(ctx, "day_0", bytes.NewReader(data), int64(len(data)), program.CriteoBinary,
		partition.Options{})
	require.NoError(t, err)
	prog, schema := hashed()
	p, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	_, err = p.Open(ctx, processor.Run{Partition: part, Rows: 8, Batch: 3})
	require.Error(t, err)
	s, err := p.Open(ctx, processor.Run{Partition: part, First: 1, Rows: 6, Batch: 4})
	require.NoError(t, err)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = s.Next(ended)
	require.ErrorIs(t, err, context.Canceled)
	for _, want := range []int{4, 2} {
		m, err := s.Next(ctx)
		require.NoError(t, err)
		assert.Equal(t, want, m.Rows)
		assert.False(t, m.Lent())
		m.Release()
	}
	_, err = s.Next(ctx)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, int64(6), p.Stats().Rows)
	assert.Equal(t, int64(2), p.Stats().Fragments)
	require.NoError(t, s.Close())
	require.NoError(t, p.Close())
}
