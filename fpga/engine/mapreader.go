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
	blockElements = 8192
	blockNumbers  = 16384
)

// blockPlaces bounds how many places a block should have: rows times different keys.
const blockPlaces = 1 << 18

// mapReader reads the leaves of a map. Each leaf has a decoder, a block and a dictionary of its own, in an executor
// that does nothing else. The leaves' cursors move only after a block of all leaves was written, so they always
// stand before the same row.
type mapReader struct {
	leaves      []*executor
	scans       []rowScan
	lastRows    []lastRow
	crossesPage []bool // by leaf: the current block is the last row of a page, and ends at lastRows
	mapFeatures
}

// release drops the references to the slice's memory.
func (m *mapReader) release() {
	for _, leaf := range m.leaves {
		leaf.ctx, leaf.memory = nil, Memory{}
		leaf.program, leaf.page.unpacked, leaf.resident.open = nil, nil, false
		leaf.block.Reset(leaf.block.Kind)
	}
	clear(m.scans[:cap(m.scans)])
	clear(m.lastRows[:cap(m.lastRows)])
}

// bufferBytes returns the size of the buffers that grow with the data.
func (m *mapReader) bufferBytes() int {
	n := m.mapFeatures.bufferBytes()
	for _, r := range m.leaves {
		n += r.bufferBytes()
	}
	return n
}

// openTasks sets the leaves to the tasks of a map. first is the index of the first of these tasks.
func (m *mapReader) openTasks(x *executor, plan *mapPlan, first int) {
	for len(m.leaves) < plan.leaves {
		m.leaves = append(m.leaves, newExecutor(x.engine))
	}
	m.scans, m.lastRows, m.crossesPage = m.scans[:0], m.lastRows[:0], m.crossesPage[:0]
	for i := range plan.leaves {
		leaf := m.leaves[i]
		leaf.ctx, leaf.memory, leaf.program, leaf.resident.open = x.ctx, x.memory, x.program, false
		leaf.result.BytesIn, leaf.result.Decode = 0, 0
		m.scans = append(m.scans, rowScan{taskState: &x.tasks[first+i]})
		m.lastRows = append(m.lastRows, lastRow{})
		m.crossesPage = append(m.crossesPage, false)
	}
}

// executeMap executes the tasks of a map, and reports whether memory or bytes lack.
func (x *executor) executeMap(plan *mapPlan, first int) (lacks bool, err error) {
	reader := &x.mapReader
	reader.openTasks(x, plan, first)
	written, output := x.output.written, x.output.bytesWritten
	done, failed, err := x.scanMap(plan)
	if x.output.fixed {
		// Values of keys with fixed lengths are not appended. They are counted nevertheless.
		x.output.written += uint64(plan.keyCount) * uint64(done)
	}
	x.result.Values = x.output.written
	x.result.BytesOut += x.output.bytesWritten - output
	for i := range reader.scans {
		s, result := &reader.scans[i], &x.result.Tasks[first+i]
		x.result.BytesIn += reader.leaves[i].result.BytesIn
		result.Cursor, result.Page, result.Rows = s.cursor, uint32(s.pageBytes), done
		switch {
		case err != nil:
			if i == failed {
				result.State = errorState(err)
			}
		case s.lacking != program.Done:
			if result.State, result.Need = s.lacking, s.needed; !lacks {
				x.result.State, lacks = s.lacking, true
			}
		case done == s.task.Count:
			result.State = program.Done
		}
	}
	if err == nil {
		x.result.Tasks[first+1].Values = x.output.written - written
	}
	return lacks, err
}

// scanMap decodes and writes the map's rows until all are written, or until memory or bytes lack. done is the number
// of rows written, and failed is the leaf that an error is about.
func (x *executor) scanMap(plan *mapPlan) (done uint32, failed int, err error) {
	reader := &x.mapReader
	task := reader.scans[0].task
	base, err := x.stagedStart(plan, task)
	if err != nil {
		return 0, 0, err
	}
	values := blockNumbers
	if reader.scans[1].column.list {
		values = blockElements
	}
	most := max(1, min(x.engine.blockRows, blockPlaces/max(1, plan.mapKeys)))
	rows := min(64, most)
	for done < task.Count {
		start := x.readClock()
		n, failed, err := reader.readBlock(min(rows, int(task.Count-done)))
		now := x.addLap(program.UnitParquet, start, reader.decodedValues())
		x.result.Decode += now - start
		if err != nil || n == 0 {
			reader.retreat()
			return done, failed, err
		}
		ok, failed, err := x.joinLeaves(plan, uint64(task.Row)+uint64(done), n, base)
		x.result.Transform += x.readClock() - now
		if err != nil || !ok {
			reader.retreat()
			return done, failed, err
		}
		done += uint32(n)
		reader.advance(n)
		rows = min(max(1, n*values/max(1, reader.largestLeaf())), most)
	}
	for i := range reader.scans {
		s, leaf := &reader.scans[i], reader.leaves[i]
		if s.pageOpen && leaf.decoder.Rows() == 0 {
			s.leavePage(leaf)
		}
		s.noteUnpacked(s.pageOpen, &leaf.page)
	}
	if !x.output.fixed && task.Row+task.Count == x.slice.Rows {
		start := x.readClock()
		err = x.orderByKey(plan, base)
		x.result.Transform += x.addLap(program.UnitMap, start, int(x.output.written-base)) - start
	}
	return done, 1, err
}

// decodedValues returns how many values the current block has, all leaves together.
func (m *mapReader) decodedValues() (n int) {
	for i := range m.scans {
		n += m.leaves[i].block.Values()
	}
	return n
}

// largestLeaf returns the greatest number of values or entries that a leaf has in the current block.
func (m *mapReader) largestLeaf() int {
	most := 0
	for i := range m.scans {
		b := &m.leaves[i].block
		most = max(most, b.Values(), len(b.Inner))
	}
	return most
}

// readBlock decodes the next rows of all leaves, at most n, and returns their number. It returns 0 if memory or
// bytes lack. It does not move the cursors.
func (m *mapReader) readBlock(n int) (rows, failed int, err error) {
	clear(m.crossesPage)
	for i := range m.scans {
		have, err := m.readyRows(i)
		if err != nil || m.scans[i].lacking != program.Done {
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
		again := false
		for i := range m.scans {
			s, leaf := &m.scans[i], m.leaves[i]
			if m.crossesPage[i] {
				if m.lastRows[i], err = leaf.readLastRow(s); err != nil || s.lacking != program.Done {
					clear(m.crossesPage[i+1:])
					return 0, i, err
				}
				continue
			}
			leaf.block.Reset(s.columnType.Kind())
			leaf.block.Lend = true
			got, err := leaf.decoder.Next(&leaf.block, n)
			if errors.Is(err, format.ErrLimit) && n > 1 {
				again = true
				break
			}
			if err == nil && got != n {
				err = pageError("%d of %d rows are missing", n-got, n)
			}
			if err != nil {
				clear(m.crossesPage)
				return 0, i, s.atPage(&s.cursor, err)
			}
		}
		if !again {
			return n, 0, nil
		}
		// The rows are longer than the rows before them: decode fewer at a time.
		n = max(1, n/16)
		for i := range m.scans {
			if err := m.leaves[i].reopen(&m.scans[i]); err != nil {
				return 0, i, err
			}
		}
	}
}

// readyRows opens the page of a leaf's next row, and returns how many rows of that page can be read without another
// page. It returns 0 if only the page's last row is left and may continue in the next page.
func (m *mapReader) readyRows(i int) (rows int, err error) {
	s, leaf := &m.scans[i], m.leaves[i]
	for {
		if !s.pageOpen {
			if err := leaf.openRow(s); err != nil || s.lacking != program.Done {
				return 0, err
			}
		}
		n := leaf.decoder.Rows()
		if n == 0 {
			s.leavePage(leaf)
			continue
		}
		if s.mayContinue(leaf) {
			n--
		}
		return n, nil
	}
}

// advance moves the cursors behind the block.
func (m *mapReader) advance(n int) {
	for i := range m.scans {
		s := &m.scans[i]
		if s.done += uint32(n); m.crossesPage[i] {
			m.lastRows[i].advance(s)
		} else {
			s.cursor.Skip += uint64(n)
		}
	}
}

// retreat leaves the cursors before the block, and notes which pages lie unpacked where the next slice will look for
// them.
func (m *mapReader) retreat() {
	for i := range m.scans {
		s, leaf := &m.scans[i], m.leaves[i]
		switch {
		case m.crossesPage[i] && m.lastRows[i].unpacked.size > 0:
			m.lastRows[i].retreat(s)
		case s.pageOpen:
			s.noteUnpacked(true, &leaf.page)
		}
	}
}
