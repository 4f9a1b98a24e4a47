package engine

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
)

// writeBlock runs the block's values through the chains of the sinks, writes the results, and returns how many of
// the block's rows were written. It writes fewer than all rows only if the output lacks room for a list; it then
// notes that in the task's state (StopEarly).
func (x *executor) writeBlock(s *rowScan) (int, error) {
	now := x.RecordRun(program.UnitParquet, s.StageStart, s.Block.Values())
	x.Profile[program.UnitParquet].AddDecoded(&s.Block, s.ColumnType.Physical)
	x.result.Decode += now - s.StageStart
	defer func() {
		s.StageStart = x.ReadClock()
		x.result.Transform += s.StageStart - now
	}()
	row, b := s.FirstRow(), &s.Block
	if err := s.BringBlock(); err != nil {
		return 0, err
	}
	v := &x.values
	*v = block.Values{Kind: s.Column.Kind, Count: b.Values(), Int64s: b.I64, Float32s: b.F32, Float64s: b.F64,
		Offsets: b.Offsets, Data: b.Data, List: s.ColumnType.List}
	if b.Nulls > 0 {
		v.Valid = b.Valid
	}
	end, sum := s.BeginBlockSum()
	defer s.SumUpTo(end)
	if v.List {
		v.Lengths, v.OwnsValues, v.OwnsLengths = b.Lengths, v.Kind != program.Bytes && !b.Lent, true
		if s.sinks[0].Tensor == program.ToDense {
			return x.writeDenseLists(s, row, v)
		}
		x.buffers.Final = x.output.IDDestination(x.output.Written, v.Count)
		if len(s.sinks[0].chain) == 1 {
			x.buffers.InputSum = sum
		}
		err := x.runChain(s.sinks[0].chain, v)
		x.buffers.InputSum = nil
		if err != nil {
			s.sinks[0].LocateAbsentKey(err, row)
			return 0, s.ErrorAtCursor(failure.InRows(row, b.Rows, err))
		}
		rows, need, err := x.output.StoreLists(uint64(s.sinks[0].Index), row, v, nil)
		if err != nil {
			return 0, s.ErrorAtCursor(err)
		}
		if rows < b.Rows {
			s.StopEarly(program.MoreOutput, need)
		}
		return rows, nil
	}
	if err := x.writeScalars(s.sinks, row, *v, !b.Lent); err != nil {
		return 0, s.ErrorAtCursor(err)
	}
	return b.Rows, nil
}

// writeScalars runs scalars through every sink's chain and writes them. lastUse reports that nothing reads the values
// afterwards, so that the last sink may change them.
func (x *executor) writeScalars(sinks []sink, row uint64, scalars block.Values, lastUse bool) error {
	for i := range sinks {
		s := &sinks[i]
		v := &x.values
		*v = scalars
		v.OwnsValues = lastUse && i == len(sinks)-1
		x.buffers.Final = block.Destination{}
		switch s.Tensor {
		case program.ToSparse:
			x.buffers.Final = x.output.IDDestination(x.output.ScalarIndex(uint64(s.Index), row), v.Count)
		case program.ToDense:
			x.buffers.Final.Dense = x.output.DenseDestination(uint64(s.Index), row, v.Count)
		}
		if err := x.runChain(s.chain, v); err != nil {
			s.LocateAbsentKey(err, row)
			return failure.InRows(row, v.Count, err)
		}
		if s.Tensor == program.ToSparse && v.Valid != nil {
			x.buffers.OwnValues(v) // storeSparse removes nulls in place
		}
		if err := x.output.StoreScalars(&s.Place, row, v); err != nil {
			return err
		}
	}
	return nil
}

// writeDenseLists runs a block's lists through the chain of their sink, writes each as neighbouring columns of dense,
// and returns the number of rows.
func (x *executor) writeDenseLists(s *rowScan, row uint64, v *block.Values) (int, error) {
	to := &s.sinks[0]
	x.buffers.Final = block.Destination{}
	if err := x.runChain(to.chain, v); err != nil {
		return 0, s.ErrorAtCursor(failure.InRows(row, len(v.Lengths), err))
	}
	if err := x.output.StoreScalars(&to.Place, row, v); err != nil {
		return 0, s.ErrorAtCursor(err)
	}
	return len(v.Lengths), nil
}
