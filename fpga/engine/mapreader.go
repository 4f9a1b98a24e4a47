package engine

import (
	"errors"
	"slices"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/chunk"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/engine/profile"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// These constants bound how many elements a block of a map should hold, so that its blocks and the features made of
// them fit the second-level cache. A map to numbers takes more rows, because a row has one number a feature.
const (
	mapBlockElements = 8192
	mapBlockNumbers  = 16384
)

// mapBlockPlaces bounds how many places a block should have: rows times different keys.
const mapBlockPlaces = 1 << 18

// mapReader reads columns side by side: the leaves of a map, or the columns of a graph. Each leaf has a decoder, a
// block and a dictionary of its own. The leaves' cursors move only after a block of all leaves was written, so they
// always stand before the same row.
type mapReader struct {
	leaves      []*chunk.Reader // those of the current group
	crossesPage []bool          // by leaf: the current block is the last row of a page
	mapFeatures
}

// ReleaseMemory drops the references to the slice's memory.
func (m *mapReader) releaseMemory() {
	for _, leaf := range m.leaves[:cap(m.leaves)] {
		if leaf != nil {
			leaf.ReleaseMemory()
		}
	}
}

// BufferBytes returns the size of the buffers that grow with the data.
func (m *mapReader) bufferBytes() int {
	n := m.mapFeatures.bufferBytes()
	for _, leaf := range m.leaves[:cap(m.leaves)] {
		if leaf != nil {
			n += leaf.BufferBytes()
		}
	}
	return n
}

// assignTasks sets the leaves to the tasks of a group of columns. first is the index of the first of these tasks.
func (m *mapReader) assignTasks(x *executor, leaves, first int) {
	m.leaves = m.leaves[:min(leaves, cap(m.leaves))]
	for len(m.leaves) < leaves {
		m.leaves = append(m.leaves, nil)
	}
	m.crossesPage = block.Resize(&m.crossesPage, leaves)
	clear(m.crossesPage)
	for i := range leaves {
		if m.leaves[i] == nil { // a leaf's work is timed with that of its group
			m.leaves[i] = chunk.NewReader(profile.NewStopwatch(), x.engine.maxBlockValues())
		}
		m.leaves[i].BeginSlice(x.ctx)
		m.leaves[i].BeginTask(&x.tasks[first+i])
	}
}

// executeGroup executes the tasks of a group of columns, and reports whether memory or bytes lack.
func (x *executor) executeGroup(plan groupPlan, first int) (stopped bool, err error) {
	reader, group := &x.mapReader, plan.base()
	reader.assignTasks(x, group.leaves, first)
	written, output := x.output.Written, x.output.BytesWritten
	done, failedLeaf, err := x.scanGroup(plan)
	if x.output.Fixed {
		// Values of keys with fixed lengths are not appended. They are counted nevertheless.
		x.output.Written += uint64(group.keys.Count) * uint64(done)
	}
	x.result.Values = x.output.Written
	x.result.BytesOut += x.output.BytesWritten - output
	for i, s := range reader.leaves {
		result := &x.result.Tasks[first+i]
		x.result.BytesIn += s.BytesIn
		result.Cursor, result.Page, result.Rows = s.Cursor, uint32(s.PageBytes), done
		switch {
		case err != nil:
			if i == failedLeaf {
				result.State = failure.StateOf(err)
			}
		case s.Stopped():
			if result.State, result.Need = s.StopState, s.StopNeed; !stopped {
				x.result.State, stopped = s.StopState, true
			}
		case done == s.Asked.Count:
			result.State = program.Done
		}
	}
	if err == nil {
		x.result.Tasks[first+group.valuesLeaf].Values = x.output.Written - written
	}
	return stopped, err
}

// scanGroup decodes and writes the group's rows until all are written, or until memory or bytes lack. done is the
// number of rows written, and failedLeaf is the leaf that an error is about.
func (x *executor) scanGroup(plan groupPlan) (done uint32, failedLeaf int, err error) {
	reader, group := &x.mapReader, plan.base()
	task := reader.leaves[0].Asked
	mapStart, err := x.output.ValuesStart(group.keys, task.Row)
	if err != nil {
		return 0, 0, err
	}
	values, maxRows := plan.blockSize(x)
	rows := min(64, maxRows)
	for done < task.Count {
		start := x.ReadClock()
		n, failedLeaf, err := reader.decodeLeaves(min(rows, int(task.Count-done)))
		now := x.RecordRun(program.UnitParquet, start, reader.decodedValues())
		for _, leaf := range reader.leaves {
			x.Profile[program.UnitParquet].AddDecoded(&leaf.Block, leaf.ColumnType.Physical)
		}
		x.result.Decode += now - start
		if err != nil || n == 0 {
			reader.keepCursorsBeforeBlock()
			return done, failedLeaf, err
		}
		ok, failedLeaf, err := plan.writeBlock(x, uint64(task.Row)+uint64(done), n, mapStart)
		x.result.Transform += x.ReadClock() - now
		if err != nil || !ok {
			reader.keepCursorsBeforeBlock()
			return done, failedLeaf, err
		}
		done += uint32(n)
		reader.moveCursorsBehindBlock(n)
		rows = min(max(1, n*values/max(1, reader.largestLeafSize())), maxRows)
	}
	for _, leaf := range reader.leaves {
		leaf.EndPass()
	}
	if !x.output.Fixed && task.Row+task.Count == x.slice.Rows {
		start := x.ReadClock()
		err = x.output.OrderByKey(&x.staged, group.keys, mapStart)
		x.result.Transform += x.RecordRun(program.UnitMap, start, int(x.output.Written-mapStart)) - start
	}
	return done, group.valuesLeaf, err
}

// decodedValues returns how many values the current block has, all leaves together.
func (m *mapReader) decodedValues() (n int) {
	for _, leaf := range m.leaves {
		n += leaf.Block.Values()
	}
	return n
}

// largestLeafSize returns the greatest number of values or entries that a leaf has in the current block.
func (m *mapReader) largestLeafSize() int {
	most := 0
	for _, leaf := range m.leaves {
		b := &leaf.Block
		most = max(most, b.Values(), len(b.Inner))
	}
	return most
}

// decodeLeaves decodes the next rows of all leaves, at most n, and returns their number. It returns 0 if memory or
// bytes lack. It does not move the cursors.
func (m *mapReader) decodeLeaves(n int) (rows, failedLeaf int, err error) {
	clear(m.crossesPage)
	for i, leaf := range m.leaves {
		have, err := leaf.OpenPage()
		if err != nil || leaf.Stopped() {
			clear(m.crossesPage)
			return 0, i, err
		}
		// If have is 0, the page has one row left, which may continue in the next page.
		m.crossesPage[i] = have == 0
		n = min(n, max(1, have))
	}
	cross := slices.Contains(m.crossesPage, true)
	for {
		if cross {
			n = 1
		}
		tooLong := false
		for i, s := range m.leaves {
			if m.crossesPage[i] {
				if err = s.ReadLastRow(); err != nil || s.Stopped() {
					clear(m.crossesPage[i+1:])
					return 0, i, err
				}
				continue
			}
			got, err := s.DecodeBlock(n)
			if errors.Is(err, format.ErrLimit) && n > 1 {
				tooLong = true
				break
			}
			if err == nil && got != n {
				err = failure.Page("%d of %d rows are missing", n-got, n)
			}
			if err != nil {
				clear(m.crossesPage)
				return 0, i, s.ErrorAtCursor(err)
			}
		}
		if !tooLong {
			failedLeaf, err := m.bringBlocks()
			if err != nil {
				return 0, failedLeaf, err
			}
			return n, 0, nil
		}
		// The rows are longer than the rows before them: decode fewer at a time.
		n = max(1, n/16)
		for i, leaf := range m.leaves {
			if err := leaf.RewindDecoder(); err != nil {
				return 0, i, err
			}
		}
	}
}

// bringBlocks converts the leaves' blocks to the kinds of their columns.
func (m *mapReader) bringBlocks() (failedLeaf int, err error) {
	for i, leaf := range m.leaves {
		if err := leaf.BringBlock(); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// moveCursorsBehindBlock moves the cursors behind the block, which has n rows.
func (m *mapReader) moveCursorsBehindBlock(n int) {
	for i, leaf := range m.leaves {
		leaf.MoveBehindBlock(n, m.crossesPage[i])
	}
}

// keepCursorsBeforeBlock leaves the cursors before the block, and notes which pages lie unpacked in scratch, where the
// next slice will look for them.
func (m *mapReader) keepCursorsBeforeBlock() {
	for i, leaf := range m.leaves {
		leaf.StayBeforeBlock(m.crossesPage[i])
	}
}

// stageRows writes the ids that the keys of a group have for n rows. ok is false if the output lacks room for them; the
// task's state then says how much is needed.
func (x *executor) stageRows(group *columnGroup, row uint64, n int, mapStart uint64) (ok bool, err error) {
	clock := x.ReadClock()
	need, err := x.output.StoreStaged(&x.staged, group.keys, row, n, mapStart)
	if need > 0 {
		x.mapReader.leaves[group.valuesLeaf].StopEarly(program.MoreOutput, need)
	}
	if need > 0 || err != nil {
		return false, err
	}
	x.RecordRun(program.UnitMap, clock, len(x.staged.IDs))
	return true, nil
}
