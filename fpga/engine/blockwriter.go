package engine

import (
	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
)

// writeBlock runs the block's values through the chains of the sinks, writes the results, and returns how many of
// the block's rows were written. It writes fewer than all rows only if the output lacks room for a list; it then
// notes that in the task's state (stopEarly).
func (x *executor) writeBlock(s *rowScan) (int, error) {
	now := x.recordRun(program.UnitParquet, s.stageStart, x.block.Values())
	x.profile[program.UnitParquet].addDecoded(&x.block, s.columnType.Physical)
	x.result.Decode += now - s.stageStart
	defer func() {
		s.stageStart = x.readClock()
		x.result.Transform += s.stageStart - now
	}()
	row := uint64(s.task.Row) + uint64(s.rowsWritten)
	b := &x.block
	if s.mustFitInt64() {
		if err := rejectLargeUnsigned(row, b); err != nil {
			return 0, s.errorAtPage(&s.cursor, err)
		}
	}
	if s.brings {
		if err := s.values.bring(b, row); err != nil {
			return 0, s.errorAtPage(&s.cursor, err)
		}
	}
	v := &x.values
	*v = block.Values{Kind: s.column.kind, Count: b.Values(), Int64s: b.I64, Float32s: b.F32, Float64s: b.F64,
		Offsets: b.Offsets, Data: b.Data, List: s.columnType.List}
	if b.Nulls > 0 {
		v.Valid = b.Valid
	}
	from, to := x.pageChecksum.blockSpan(b)
	x.pageChecksum.sumUpTo(from)
	defer x.pageChecksum.sumUpTo(to)
	if v.List {
		v.Lengths, v.OwnsValues, v.OwnsLengths = b.Lengths, v.Kind != program.Bytes && !b.Lent, true
		if s.sinks[0].tensor == program.ToDense {
			return x.writeDenseLists(s, row, v)
		}
		x.buffers.Final = x.output.idDestination(x.output.written, v.Count)
		if from < to && x.pageChecksum.Summed == from && len(s.sinks[0].chain) == 1 {
			x.buffers.InputSum = &x.pageChecksum.RunningSum
		}
		err := x.runChain(s.sinks[0].chain, v)
		x.buffers.InputSum = nil
		if err != nil {
			locateAbsentKey(err, &s.sinks[0], row)
			return 0, s.errorAtPage(&s.cursor, rowsError(row, b.Rows, err))
		}
		rows, need, err := x.output.storeLists(uint64(s.sinks[0].index), row, v, nil)
		if err != nil {
			return 0, s.errorAtPage(&s.cursor, err)
		}
		if rows < b.Rows {
			s.stopEarly(program.MoreOutput, need)
		}
		return rows, nil
	}
	if err := x.writeScalars(s.sinks, row, *v, !b.Lent); err != nil {
		return 0, s.errorAtPage(&s.cursor, err)
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
		switch s.tensor {
		case program.ToSparse:
			x.buffers.Final = x.output.idDestination(x.output.scalarIndex(uint64(s.index), row), v.Count)
		case program.ToDense:
			x.buffers.Final.Dense = x.output.denseDestination(uint64(s.index), row, v.Count)
		}
		if err := x.runChain(s.chain, v); err != nil {
			locateAbsentKey(err, s, row)
			return rowsError(row, v.Count, err)
		}
		if s.tensor == program.ToSparse && v.Valid != nil {
			x.buffers.OwnValues(v) // storeSparse removes nulls in place
		}
		if err := x.output.storeScalars(s, row, v); err != nil {
			return err
		}
	}
	return nil
}
