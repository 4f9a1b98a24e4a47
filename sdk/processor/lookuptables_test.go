package processor_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	vocabularyop "github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// lookingUp is a program that looks up field 14 of packed rows in a table of keys.
func lookingUp(t *testing.T, keys []int64) (*program.Program, *tensor.Schema) {
	t.Helper()
	shape, b, err := unit.Store(keys)
	require.NoError(t, err)
	return &program.Program{
		Source: program.CriteoBinary,
		Columns: []program.Column{{Name: "cat_0", Field: 14, Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Ops: []program.Op{positivemodulus.Op{M: 4},
				vocabularyop.Op{Base: 10}}}}}},
		LookupTables: []program.LookupTable{{Digest: sha256.Sum256(b), Hashed: shape.Hashed, Entries: shape.Entries,
			Keys: shape.Keys, Least: shape.Least, Multiplier: shape.Multiplier, Probes: shape.Probes, Stored: b,
			Listed: keys}},
		Output: program.Output{Keys: 1, IDs: program.IDs64, Fixed: true},
	}, &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "the key"}}}
}

// tableTarget damages what is stored, and keeps which slices said that the tables were verified.
type tableTarget struct {
	target.Target
	damages bool
	lie     program.AbsentKey // in every result, if it is given
	checked []bool
}

func (d *tableTarget) Store(ctx context.Context, addr uint64, b []byte) error {
	if d.damages && addr > 0 {
		b = slices.Clone(b)
		b[0] ^= 1
	}
	return d.Target.Store(ctx, addr, b)
}

func (d *tableTarget) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	s, err := wire.UnmarshalSlice(x.Args)
	if err != nil {
		return target.Outcome{}, err
	}
	d.checked = append(d.checked, s.TablesChecked)
	o, err := d.Target.Execute(ctx, x)
	if err != nil || !d.lie.Given {
		return o, err
	}
	at, _ := d.View(x.Ranges[target.RangeResult])
	r, err := wire.UnmarshalResult(at)
	if err != nil {
		return o, err
	}
	r.State, r.AbsentKey, o.State = program.BadData, d.lie, program.BadData
	copy(at, wire.AppendResult(nil, r))
	return o, nil
}

// TestTablesAreVerifiedOnce checks that the first slice has the engine verify the tables and later ones do not, that a
// damaged table is an error, and what becomes of a key that a table lacks.
func TestTablesAreVerifiedOnce(t *testing.T) {
	const rows = 100
	part := processortest.OpenText(t, processortest.BinaryRows(rows), program.CriteoBinary, partition.Options{})
	collect := func(d *tableTarget, keys ...int64) ([]*tensor.MiniBatch, error) {
		prog, schema := lookingUp(t, keys)
		d.Target = cpu.NewTarget(cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
		p, err := processor.Start(t.Context(), d, prog, schema, processor.Options{Streams: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, p.Close()) }()
		return processortest.Collect(p, processor.Run{Partition: part, First: 7, Rows: rows - 7, Batch: 10})
	}
	honest := &tableTarget{}
	made, err := collect(honest, 3, 2, 1, 0)
	require.NoError(t, err)
	prog, schema := lookingUp(t, []int64{3, 2, 1, 0})
	reference, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	want, err := processortest.Collect(reference, processor.Run{Partition: part, First: 7, Rows: rows - 7, Batch: 10})
	require.NoError(t, err)
	require.Len(t, made, len(want))
	for i := range want {
		assert.Empty(t, tensor.Diff(want[i], made[i]))
	}
	assert.False(t, honest.checked[0])
	assert.NotContains(t, honest.checked[1:], false)

	_, err = collect(&tableTarget{damages: true}, 3, 2, 1, 0)
	var fault *target.EngineError
	require.ErrorAs(t, err, &fault)
	assert.Equal(t, program.BadTable, fault.State)
	assert.ErrorContains(t, err, "lookup table 0 is damaged")

	absent := &vocabulary.UnknownError{}
	_, err = collect(&tableTarget{}, 100)
	require.ErrorAs(t, err, &absent)
	assert.Equal(t, part.Name, absent.Partition)
	assert.Equal(t, "the key", absent.Column)
	assert.EqualValues(t, 7, absent.Row, "the first row has a key that the table lacks")
	for _, lie := range []program.AbsentKey{{Given: true, Key: 1}, {Given: true, Row: 10}} {
		_, err = collect(&tableTarget{lie: lie}, 3, 2, 1, 0)
		require.ErrorIs(t, err, target.ErrEngine)
	}

	prog, schema = lookingUp(t, []int64{1})
	prog.LookupTables[0].Stored = nil
	_, err = cpu.New(t.Context(), prog, schema, cpu.Options{Processor: processor.Options{SLM: 1 << 20}})
	require.ErrorContains(t, err, "0 of its 4 bytes are at hand")
	prog, schema = lookingUp(t, []int64{1, 4000})
	_, err = cpu.New(t.Context(), prog, schema, cpu.Options{Processor: processor.Options{SLM: 16 << 10}})
	require.Error(t, err, "no room")
}
