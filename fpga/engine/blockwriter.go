package engine

import (
	"fmt"

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
	v := chainValues{kind: s.column.kind, count: b.Values(), int64s: b.I64, float32s: b.F32, float64s: b.F64,
		offsets: b.Offsets, data: b.Data, list: s.columnType.List}
	if b.Nulls > 0 {
		v.valid = b.Valid
	}
	from, to := x.pageChecksum.blockSpan(b)
	x.pageChecksum.sumUpTo(from)
	defer x.pageChecksum.sumUpTo(to)
	if v.list {
		v.lengths, v.ownsValues, v.ownsLengths = b.Lengths, v.kind != program.Bytes && !b.Lent, true
		if s.sinks[0].tensor == program.ToDense {
			return x.writeDenseLists(s, row, &v)
		}
		x.buffers.chainDestination = x.output.idDestination(x.output.written, v.count)
		if from < to && x.pageChecksum.summed == from && len(s.sinks[0].steps) == 1 {
			x.buffers.operatorChecksum = &x.pageChecksum
		}
		err := x.runChain(s.sinks[0].steps, &v)
		x.buffers.operatorChecksum = nil
		if err != nil {
			locateAbsentKey(err, &s.sinks[0], row)
			return 0, s.errorAtPage(&s.cursor, fmt.Errorf("rows %d to %d of the mini-batch: %w", row,
				row+uint64(b.Rows)-1, err))
		}
		rows, need, err := x.output.storeLists(uint64(s.sinks[0].index), row, &v, nil)
		if err != nil {
			return 0, s.errorAtPage(&s.cursor, err)
		}
		if rows < b.Rows {
			s.stopEarly(program.MoreOutput, need)
		}
		return rows, nil
	}
	if err := x.writeScalars(s.sinks, row, v, !b.Lent); err != nil {
		return 0, s.errorAtPage(&s.cursor, err)
	}
	return b.Rows, nil
}

// writeScalars runs scalars through every sink's chain and writes them. spent reports that nothing reads v's values
// afterwards, so that the last sink may change them.
func (x *executor) writeScalars(sinks []sink, row uint64, v chainValues, lastUse bool) error {
	for i := range sinks {
		s := &sinks[i]
		v := v
		v.ownsValues = lastUse && i == len(sinks)-1
		x.buffers.chainDestination = destination{}
		switch s.tensor {
		case program.ToSparse:
			x.buffers.chainDestination = x.output.idDestination(x.output.scalarIndex(uint64(s.index), row), v.count)
		case program.ToDense:
			x.buffers.chainDestination.dense = x.output.denseDestination(uint64(s.index), row, v.count)
		}
		if err := x.runChain(s.steps, &v); err != nil {
			locateAbsentKey(err, s, row)
			return fmt.Errorf("rows %d to %d of the mini-batch: %w", row, row+uint64(v.count)-1, err)
		}
		if s.tensor == program.ToSparse && v.valid != nil {
			x.buffers.ownValues(&v) // storeSparse removes nulls in place
		}
		if err := x.output.storeScalars(s, row, &v); err != nil {
			return err
		}
	}
	return nil
}
