package engine

import (
	"errors"
	"slices"

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
// block and a dictionary of its own, in an executor that does nothing else. The leaves' cursors move only after a block
// of all leaves was written, so they always stand before the same row.
type mapReader struct {
	leaves      []*executor
	scans       []rowScan
	lastRows    []lastRow
	crossesPage []bool // by leaf: the current block is the last row of a page, and ends at lastRows
	mapFeatures
}

// releaseMemory drops the references to the slice's memory.
func (m *mapReader) releaseMemory() {
	for _, leaf := range m.leaves {
		leaf.ctx, leaf.memory = nil, Memory{}
		leaf.program, leaf.page.unpacked, leaf.resident.opened = nil, nil, false
		leaf.block.Reset(leaf.block.Kind)
	}
	clear(m.scans[:cap(m.scans)])
	clear(m.lastRows[:cap(m.lastRows)])
}

// bufferBytes returns the size of the buffers that grow with the data.
func (m *mapReader) bufferBytes() int {
	n := m.mapFeatures.bufferBytes()
	for _, leaf := range m.leaves {
		n += leaf.bufferBytes()
	}
	return n
}

// assignTasks sets the leaves to the tasks of a group of columns. first is the index of the first of these tasks.
func (m *mapReader) assignTasks(x *executor, leaves, first int) {
	for len(m.leaves) < leaves {
		m.leaves = append(m.leaves, newExecutor(x.engine))
	}
	m.scans, m.lastRows, m.crossesPage = m.scans[:0], m.lastRows[:0], m.crossesPage[:0]
	for i := range leaves {
		leaf := m.leaves[i]
		leaf.ctx, leaf.memory, leaf.program, leaf.resident.opened = x.ctx, x.memory, x.program, false
		leaf.result.BytesIn, leaf.result.Decode = 0, 0
		m.scans = append(m.scans, rowScan{taskState: &x.tasks[first+i]})
		m.lastRows = append(m.lastRows, lastRow{})
		m.crossesPage = append(m.crossesPage, false)
	}
}

// executeGroup executes the tasks of a group of columns, and reports whether memory or bytes lack.
func (x *executor) executeGroup(plan groupPlan, first int) (stopped bool, err error) {
	reader, group := &x.mapReader, plan.base()
	reader.assignTasks(x, group.leaves, first)
	written, output := x.output.written, x.output.bytesWritten
	done, failedLeaf, err := x.scanGroup(plan)
	if x.output.fixed {
		// Values of keys with fixed lengths are not appended. They are counted nevertheless.
		x.output.written += uint64(group.keys.count) * uint64(done)
	}
	x.result.Values = x.output.written
	x.result.BytesOut += x.output.bytesWritten - output
	for i := range reader.scans {
		s, result := &reader.scans[i], &x.result.Tasks[first+i]
		x.result.BytesIn += reader.leaves[i].result.BytesIn
		result.Cursor, result.Page, result.Rows = s.cursor, uint32(s.cursorPageBytes), done
		switch {
		case err != nil:
			if i == failedLeaf {
				result.State = errorState(err)
			}
		case s.stopped():
			if result.State, result.Need = s.stopState, s.stopNeed; !stopped {
				x.result.State, stopped = s.stopState, true
			}
		case done == s.task.Count:
			result.State = program.Done
		}
	}
	if err == nil {
		x.result.Tasks[first+group.valuesLeaf].Values = x.output.written - written
	}
	return stopped, err
}

// scanGroup decodes and writes the group's rows until all are written, or until memory or bytes lack. done is the
// number of rows written, and failedLeaf is the leaf that an error is about.
func (x *executor) scanGroup(plan groupPlan) (done uint32, failedLeaf int, err error) {
	reader, group := &x.mapReader, plan.base()
	task := reader.scans[0].task
	mapStart, err := x.mapValuesStart(group.keys, task)
	if err != nil {
		return 0, 0, err
	}
	values, maxRows := plan.blockSize(x)
	rows := min(64, maxRows)
	for done < task.Count {
		start := x.readClock()
		n, failedLeaf, err := reader.decodeLeaves(min(rows, int(task.Count-done)))
		now := x.recordRun(program.UnitParquet, start, reader.decodedValues())
		for i := range reader.scans {
			x.profile[program.UnitParquet].addDecoded(&reader.leaves[i].block, reader.scans[i].columnType.Physical)
		}
		x.result.Decode += now - start
		if err != nil || n == 0 {
			reader.keepCursorsBeforeBlock()
			return done, failedLeaf, err
		}
		ok, failedLeaf, err := plan.writeBlock(x, uint64(task.Row)+uint64(done), n, mapStart)
		x.result.Transform += x.readClock() - now
		if err != nil || !ok {
			reader.keepCursorsBeforeBlock()
			return done, failedLeaf, err
		}
		done += uint32(n)
		reader.moveCursorsBehindBlock(n)
		rows = min(max(1, n*values/max(1, reader.largestLeafSize())), maxRows)
	}
	for i := range reader.scans {
		s, leaf := &reader.scans[i], reader.leaves[i]
		if s.pageLoaded && leaf.decoder.Rows() == 0 {
			s.finishPage(leaf)
		}
		s.notePageInScratch(s.pageLoaded, &leaf.page)
	}
	if !x.output.fixed && task.Row+task.Count == x.slice.Rows {
		start := x.readClock()
		err = x.orderByKey(group.keys, mapStart)
		x.result.Transform += x.recordRun(program.UnitMap, start, int(x.output.written-mapStart)) - start
	}
	return done, group.valuesLeaf, err
}

// decodedValues returns how many values the current block has, all leaves together.
func (m *mapReader) decodedValues() (n int) {
	for i := range m.scans {
		n += m.leaves[i].block.Values()
	}
	return n
}

// largestLeafSize returns the greatest number of values or entries that a leaf has in the current block.
func (m *mapReader) largestLeafSize() int {
	most := 0
	for i := range m.scans {
		b := &m.leaves[i].block
		most = max(most, b.Values(), len(b.Inner))
	}
	return most
}

// decodeLeaves decodes the next rows of all leaves, at most n, and returns their number. It returns 0 if memory or
// bytes lack. It does not move the cursors.
func (m *mapReader) decodeLeaves(n int) (rows, failedLeaf int, err error) {
	clear(m.crossesPage)
	for i := range m.scans {
		have, err := m.openLeafPage(i)
		if err != nil || m.scans[i].stopped() {
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
		for i := range m.scans {
			s, leaf := &m.scans[i], m.leaves[i]
			if m.crossesPage[i] {
				if m.lastRows[i], err = leaf.readLastRow(s); err != nil || s.stopped() {
					clear(m.crossesPage[i+1:])
					return 0, i, err
				}
				continue
			}
			leaf.block.Reset(s.columnType.Kind())
			leaf.block.Lend = s.values.mayLend()
			got, err := leaf.decoder.Next(&leaf.block, n)
			if errors.Is(err, format.ErrLimit) && n > 1 {
				tooLong = true
				break
			}
			if err == nil && got != n {
				err = pageError("%d of %d rows are missing", n-got, n)
			}
			if err != nil {
				clear(m.crossesPage)
				return 0, i, s.errorAtPage(&s.cursor, err)
			}
		}
		if !tooLong {
			for i := range m.scans {
				if s := &m.scans[i]; s.mustFitInt64() {
					row := uint64(s.task.Row) + uint64(s.rowsWritten)
					if err := rejectLargeUnsigned(row, &m.leaves[i].block); err != nil {
						return 0, i, s.errorAtPage(&s.cursor, err)
					}
				}
			}
			failedLeaf, err := m.bringBlocks()
			return n, failedLeaf, err
		}
		// The rows are longer than the rows before them: decode fewer at a time.
		n = max(1, n/16)
		for i := range m.scans {
			if err := m.leaves[i].rewindDecoder(&m.scans[i]); err != nil {
				return 0, i, err
			}
		}
	}
}

// bringBlocks converts the leaves' blocks to the kinds of their columns.
func (m *mapReader) bringBlocks() (failedLeaf int, err error) {
	for i := range m.scans {
		s := &m.scans[i]
		if !s.brings {
			continue
		}
		if err := s.values.bring(&m.leaves[i].block, uint64(s.task.Row)+uint64(s.rowsWritten)); err != nil {
			return i, s.errorAtPage(&s.cursor, err)
		}
	}
	return 0, nil
}

// openLeafPage opens the page of a leaf's next row, and returns how many rows of that page can be read without another
// page. It returns 0 if only the page's last row is left and may continue in the next page.
func (m *mapReader) openLeafPage(i int) (rows int, err error) {
	s, leaf := &m.scans[i], m.leaves[i]
	for {
		if !s.pageLoaded {
			if err := leaf.seekCursorRow(s); err != nil || s.stopped() {
				return 0, err
			}
		}
		n := leaf.decoder.Rows()
		if n == 0 {
			s.finishPage(leaf)
			continue
		}
		if s.lastRowMayContinue(leaf) {
			n--
		}
		return n, nil
	}
}

// moveCursorsBehindBlock moves the cursors behind the block, which has n rows.
func (m *mapReader) moveCursorsBehindBlock(n int) {
	for i := range m.scans {
		s := &m.scans[i]
		if s.rowsWritten += uint32(n); m.crossesPage[i] {
			m.lastRows[i].moveCursorBehindRow(s)
		} else {
			s.cursor.Skip += uint64(n)
		}
	}
}

// keepCursorsBeforeBlock leaves the cursors before the block, and notes which pages lie unpacked in scratch, where the
// next slice will look for them.
func (m *mapReader) keepCursorsBeforeBlock() {
	for i := range m.scans {
		s, leaf := &m.scans[i], m.leaves[i]
		switch {
		case m.crossesPage[i] && m.lastRows[i].pageInScratch.size > 0:
			m.lastRows[i].keepCursorBeforeRow(s)
		case s.pageLoaded:
			s.notePageInScratch(true, &leaf.page)
		}
	}
}
