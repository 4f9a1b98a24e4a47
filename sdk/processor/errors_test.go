package processor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestDamagedPages changes one byte of every page in turn. The error names the place, and the mini-batches before the
// place are whole.
func TestDamagedPages(t *testing.T) {
	l := processortest.Layout{Rows: 400, Group: 150, Page: 1 << 10, Seed: 61}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	whole := processortest.Open(t, data, true)
	run := processor.Run{Partition: whole, Rows: 400, Batch: 60}
	want := processortest.Reference(t, prog, schema, run)
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 2 << 20})
	pages := 0
	for g, group := range whole.File.RowGroups {
		for c := range prog.Columns {
			leaf, ok := whole.File.Leaf(prog.Columns[c].Name)
			require.True(t, ok)
			ch := group.Columns[leaf.Index]
			at, end := ch.Offset, ch.Offset+ch.Compressed
			for number := int64(0); at < end; number++ {
				h, n, err := format.ParsePageHeader(data[at:end])
				require.NoError(t, err)
				hurt := bytes.Clone(data)
				hurt[at+int64(n)+int64(h.Compressed)/2] ^= 0x10
				run.Partition = processortest.Open(t, hurt, number%2 == 0)
				got, err := processortest.Collect(p, run)
				var bad *partition.DataError
				require.ErrorAs(t, err, &bad, "%s, page %d", leaf.Path, number)
				assert.ErrorIs(t, err, partition.ErrData)
				assert.Equal(t, g, bad.RowGroup)
				assert.Equal(t, prog.Columns[c].Name, bad.Column)
				// A list may go on in the next page: then Page is the row's first page.
				assert.Contains(t, []int64{number, number - 1}, bad.Page)
				assert.True(t, bad.Page == number || leaf.List)
				assert.ErrorContains(t, err, fmt.Sprintf("page %d at", number))
				assert.Equal(t, "part-0.parquet", bad.Partition)
				assert.ErrorContains(t, err, "checksum")
				processortest.RequireSame(t, want[:len(got)], got)
				at += int64(n) + int64(h.Compressed)
				pages++
			}
		}
	}
	assert.Greater(t, pages, 30)
}

// TestSchemas runs programs over partitions with other columns, and opens streams that cannot be.
func TestSchemas(t *testing.T) {
	ctx := context.Background()
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 50, Page: 1 << 10, Seed: 62})
	part := processortest.Open(t, data, true)
	sink := []program.Sink{{To: program.ToSparse, Ops: []program.Op{fillnull.Op{}}}}
	for name, c := range map[string]struct {
		column program.Column
		want   error
	}{
		"a column that is not there": {program.Column{Name: "cat_9", Kind: program.Int64, Sinks: sink}, partition.ErrSchema},
		"a list":                     {program.Column{Name: "list_0", Kind: program.Int64, Sinks: sink}, partition.ErrSchema},
		"a float":                    {program.Column{Name: "int_1", Kind: program.Int64, Sinks: sink}, partition.ErrSchema},
	} {
		prog := &program.Program{
			Source: program.Parquet, Columns: []program.Column{c.column}, Output: program.Output{Keys: 1, Fixed: true},
		}
		schema := &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "k"}}}
		p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 1 << 20})
		_, err := p.Open(ctx, processor.Run{Partition: part, Rows: 100, Batch: 10})
		require.ErrorIs(t, err, c.want, name)
		var bad *partition.DataError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, c.column.Name, bad.Column)
		// The place in memory is free again.
		_, err = p.Open(ctx, processor.Run{Partition: part, Rows: 100, Batch: 10})
		require.ErrorIs(t, err, c.want, name)
	}

	prog, schema := processortest.Fixed()
	p := processortest.OnCPU(t, prog, schema, processor.Options{SLM: 1 << 20})
	for name, run := range map[string]processor.Run{
		"no partition":         {Rows: 1, Batch: 1},
		"no batch":             {Partition: part, Rows: 1},
		"no rows":              {Partition: part, Batch: 1},
		"before the partition": {Partition: part, First: -1, Rows: 1, Batch: 1},
		"behind the partition": {Partition: part, First: 100, Rows: 1, Batch: 1},
		"too many rows":        {Partition: part, First: 1, Rows: 100, Batch: 1},
		"another format": {
			Partition: processortest.OpenText(t, processortest.BinaryRows(1), program.CriteoBinary, partition.Options{}),
			Rows:      1, Batch: 1,
		},
	} {
		_, err := p.Open(ctx, run)
		assert.Error(t, err, name)
	}

	_, jaggedSchema := processortest.Jagged()
	_, err := cpu.New(ctx, prog, jaggedSchema, cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
	require.ErrorIs(t, err, tensor.ErrShape)
	_, err = cpu.New(ctx, &program.Program{}, schema, cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
	require.ErrorIs(t, err, program.ErrInvalid)
	_, err = cpu.New(ctx, prog, schema, cpu.Options{Processor: processor.Options{SLM: 1024}})
	var slm *slicer.MemoryError
	require.ErrorAs(t, err, &slm)
}

// TestNullsThatMayNotBe runs a program that was lowered for a dense column without nulls over a column that has nulls.
func TestNullsThatMayNotBe(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 100, Group: 100, Page: 1 << 10, Seed: 63})
	ops := []program.Op{convert.Op{To: program.Float32}}
	prog := &program.Program{
		Source: program.Parquet, Output: program.Output{Dense: 1, Fixed: true},
		Columns: []program.Column{
			{Name: "int_0", Kind: program.Int64, Sinks: []program.Sink{{To: program.ToDense, Ops: ops}}},
		},
	}
	p := processortest.OnCPU(t, prog, &tensor.Schema{Dense: []string{"int_0"}}, processor.Options{SLM: 1 << 20})
	_, err := processortest.Collect(p, processor.Run{Partition: processortest.Open(t, data, true), Rows: 100, Batch: 100})
	require.ErrorIs(t, err, partition.ErrData)
	assert.ErrorContains(t, err, "int_0")
}

// liar is a target whose results break the contract.
type liar struct {
	*processortest.Flash
	lie func(r *program.Result)
}

func (l *liar) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	o, err := l.Flash.Execute(ctx, x)
	if err != nil {
		return o, err
	}
	at, _ := l.View(x.Ranges[target.RangeResult])
	r, err := wire.UnmarshalResult(at)
	if err != nil {
		return o, err
	}
	l.lie(r)
	copy(at, wire.AppendResult(nil, r))
	o.State = r.State
	return o, nil
}

// TestLies runs engines that break the contract. The host checks everything that it can check, and every run ends.
func TestLies(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 300, Group: 100, Page: 1 << 10, Seed: 65})
	prog, schema := processortest.Jagged()
	for name, lie := range map[string]func(r *program.Result){
		"more rows than asked for":    func(r *program.Result) { r.Tasks[0].Rows = 1 << 20 },
		"done, and no rows":           func(r *program.Result) { r.Tasks[0].Rows, r.Tasks[0].State = 0, program.Done },
		"values that do not fit":      func(r *program.Result) { r.Values = 1 << 40 },
		"a cursor behind the chunk":   func(r *program.Result) { r.Tasks[0].Cursor.Page = 1 << 50 },
		"input for ever":              func(r *program.Result) { want(r, program.MoreInput, 1) },
		"too much input":              func(r *program.Result) { want(r, program.MoreInput, 1<<63) },
		"a dictionary without bounds": func(r *program.Result) { want(r, program.MoreDict, 1<<64-1) },
		"room without bounds":         func(r *program.Result) { want(r, program.MoreScratch, 1<<64-1) },
		"output without bounds":       func(r *program.Result) { want(r, program.MoreOutput, 1<<64-1) },
		"idle":                        func(r *program.Result) { want(r, program.Idle, 0) },
		"a task too few":              func(r *program.Result) { r.Tasks = r.Tasks[1:] },
		"a state that there is not":   func(r *program.Result) { want(r, 9, 0) },
		"a bad slice":                 func(r *program.Result) { want(r, program.BadSlice, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			f := processortest.NewFlash(2<<20, 1)
			f.Device = data
			p, err := processor.Start(context.Background(), &liar{f, lie}, prog, schema, processor.Options{Streams: 1})
			require.NoError(t, err)
			defer p.Close()
			part := processortest.Place(t, data, []partition.Extent{{Len: int64(len(data))}})
			_, err = processortest.Collect(p, processor.Run{Partition: part, Rows: 300, Batch: 50})
			require.Error(t, err)
			var slm *slicer.MemoryError
			var bad *partition.DataError
			assert.True(t, errors.Is(err, target.ErrEngine) || errors.As(err, &slm) || errors.As(err, &bad), "%v", err)
		})
	}
}

// want makes every task lack something.
func want(r *program.Result, s program.State, need uint64) {
	r.State, r.Values = s, 0
	for i := range r.Tasks {
		r.Tasks[i] = program.TaskResult{State: s, Need: need}
	}
}

// FuzzResult gives a host random results. The run ends with an error or with mini-batches, in bounded time and memory.
func FuzzResult(f *testing.F) {
	data := processortest.WriteParquet(f, processortest.Layout{Rows: 60, Group: 40, Page: 500, Seed: 66})
	f.Add(uint64(1), []byte{1, 2, 3})
	f.Add(uint64(7), binary.LittleEndian.AppendUint64(nil, 1<<60))
	f.Fuzz(func(t *testing.T, which uint64, noise []byte) {
		prog, schema := processortest.Jagged()
		mem := processortest.NewFlash(256<<10, 1)
		mem.Device = data
		n := uint64(0)
		p, err := processor.Start(context.Background(), &liar{mem, func(r *program.Result) {
			if n++; n%(which%5+1) != 0 || len(noise) == 0 {
				return
			}
			b := wire.AppendResult(nil, r)
			for i, x := range noise {
				b[16+(i*31+int(which%101))%(len(b)-16)] ^= x
			}
			if q, err := wire.UnmarshalResult(b); err == nil && q.State < program.BadSlice {
				*r = *q
			}
		}}, prog, schema, processor.Options{Streams: 1, Sync: true})
		require.NoError(t, err)
		defer p.Close()
		part := processortest.Place(t, data, []partition.Extent{{Len: int64(len(data))}})
		got, _ := processortest.Collect(p, processor.Run{Partition: part, Rows: 60, Batch: 20})
		for _, m := range got {
			require.Equal(t, 20, m.Rows)
			require.Len(t, m.Dense, 40)
		}
	})
}
