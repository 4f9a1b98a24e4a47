package slicer

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// maxStalledSlices bounds the slices in a row that write nothing and come to no new page; see "Why it ends" in the
// package comment.
const maxStalledSlices = 1 << 14

// patience is the number of stalled slices, beside four for every portion, after which portions are placed one by
// one.
const patience = 32

// results takes in the results of slices: rows written, cursors, and requests for missing memory or bytes.
type results struct {
	columns *columns
	batch   *miniBatch
	builder *builder
	output  *output

	stalledSlices int  // slices since rows were written or a page was reached
	advanced      bool // the last slice wrote rows or reached a page
	state         program.State
}

// absorbResult takes in the result of the slice that was built.
func (r *results) absorbResult(res *program.Result) error {
	r.state = res.State
	if res.State >= program.BadSlice {
		return r.faultError(res)
	}
	if len(res.Tasks) != len(r.builder.placed) {
		return r.contractError("the result has %d tasks, want %d", len(res.Tasks), len(r.builder.placed))
	}
	if o := r.output; !o.outputSection().Fixed && (res.Values < o.valuesWritten || res.Values > o.valueCapacity()) {
		return r.contractError("it wrote %d values after %d, with room for %d",
			res.Values, o.valuesWritten, o.valueCapacity())
	}
	r.output.valuesWritten = res.Values
	changed, further := false, false
	for i, k := range r.builder.placed {
		p, t := &r.batch.portions[k], &res.Tasks[i]
		if err := r.checkTaskResult(res, i, p); err != nil {
			return err
		}
		if t.Rows > 0 {
			changed, further = true, true
			if err := r.advanceChunk(p, t); err != nil {
				return err
			}
		}
		missingIsNew, err := r.noteMissing(p, t)
		if err != nil {
			return err
		}
		changed = changed || missingIsNew
		if c := p.chunk; c.cursor.Page > c.furthestPage {
			c.furthestPage, further = c.cursor.Page, true
		}
	}
	r.batch.skipFinished()
	return r.checkProgress(changed, further)
}

// checkTaskResult checks a task's result against the request.
func (r *results) checkTaskResult(res *program.Result, i int, p *portion) error {
	c, t := p.chunk, &res.Tasks[i]
	if r.columns.program.Columns[c.column].Part.Continues() && t.Rows != res.Tasks[i-1].Rows {
		return r.contractError("task %d of a map or graph wrote %d rows, the task before it %d", i, t.Rows,
			res.Tasks[i-1].Rows)
	}
	if t.Rows > p.taskRows || t.State == program.Done && t.Rows < p.taskRows {
		return r.contractError("task %d wrote %d of %d rows and is %v", i, t.Rows, p.taskRows, t.State)
	}
	if t.Cursor.Page > c.length {
		return r.contractError("task %d goes on at byte %d of %d", i, t.Cursor.Page, c.length)
	}
	unknownPage := t.Cursor.Unpacked && t.Page == 0 && (t.Cursor.Page != c.cursor.Page || c.pageBytes == 0)
	if uint64(t.Page) > c.length-t.Cursor.Page || unknownPage {
		return r.contractError("task %d goes on in a page of %d bytes, %d from its chunk's end",
			i, t.Page, c.length-t.Cursor.Page)
	}
	return nil
}

// checkProgress ends a stream whose engine asks for bytes that it was given. changed reports whether the result held
// new information, and further whether rows were written or a page was reached.
func (r *results) checkProgress(changed, further bool) error {
	r.advanced = further
	if r.stalledSlices++; further {
		r.stalledSlices = 0
	}
	r.batch.oneByOne = r.batch.oneByOne || r.stalledSlices > patience+4*len(r.batch.portions)
	if !changed || r.stalledSlices > maxStalledSlices {
		return r.contractError("engine made no progress: it requested input that the slice already contained")
	}
	return nil
}

// advanceChunk notes rows that a task wrote. A chunk of lists must end with its last row. The engine cannot check that:
// it knows how many values a chunk has, and not how many rows.
func (r *results) advanceChunk(p *portion, t *program.TaskResult) error {
	c := p.chunk
	c.row += int64(t.Rows)
	r.learnPages(c, t.Cursor)
	c.moveCursor(t)
	c.inputBytes, c.resumeAt = 0, nil
	c.dictionaryDecoded = t.Cursor.Dict
	p.firstRow += t.Rows
	p.rowsLeft -= t.Rows
	p.maxTaskRows = 2 * c.cutRows
	if !c.isFinished() {
		return nil
	}
	if c.kind.MaxRep > 0 && t.Cursor.Seen != c.kind.Values {
		return r.dataError(c, fmt.Sprintf("the row group has %d rows, which end after %d of the chunk's %d values",
			c.rows, t.Cursor.Seen, c.kind.Values))
	}
	r.builder.arena.dropEverything(c)
	live := r.columns.begun[c.column]
	r.columns.begun[c.column] = slices.DeleteFunc(live, func(o *chunk) bool { return o == c })
	return nil
}

// dataError returns the error for a chunk whose pages or footer are damaged, at the chunk's cursor.
func (r *results) dataError(c *chunk, message string) error {
	return &partition.DataError{
		Partition: r.columns.partition.Name, RowGroup: r.columns.rowGroupNumber(c), Column: r.columns.columnName(c),
		Page: int64(c.cursor.Ordinal), Row: c.firstRow + c.row, Err: partition.ErrData, Message: message,
	}
}

// learnPages notes the bytes and rows of pages when a cursor, behind row c.row, has gone on from one page to the
// next.
func (r *results) learnPages(c *chunk, to program.Cursor) {
	if to.Ordinal <= c.cursor.Ordinal {
		return
	}
	learned, begin, from := r.columns.learnedPages(c), c.row-int64(min(to.Skip, uint64(c.row))), c.cursor
	if from.Page < c.firstDataPage {
		// A dictionary page lies between.
		from.Page, from.Ordinal = c.firstDataPage, from.Ordinal+1
	}
	if n := uint64(to.Ordinal - min(from.Ordinal, to.Ordinal)); n > 0 && to.Page > from.Page && to.Page < c.length {
		mean := (to.Page - from.Page + n - 1) / n
		learned.pageBytes = max(mean, learned.pageBytes-learned.pageBytes/8)
		learned.pageRows = max(begin-c.pageRow, 0) / int64(n)
	}
	c.pageRow = begin
}

// noteMissing notes the memory or bytes that an unfinished task lacks, and reports whether the request is new.
func (r *results) noteMissing(p *portion, t *program.TaskResult) (news bool, err error) {
	switch t.State {
	case program.Done:
		return false, nil
	case program.Idle, program.MoreInput, program.MoreDict, program.MoreScratch, program.MoreOutput:
	default:
		return false, r.contractError("a task is %v in a slice that is %v", t.State, r.state)
	}
	c := p.chunk
	if t.Rows == 0 && t.Cursor != c.cursor {
		resumed := false
		if news, resumed, err = r.notePassedPages(c, t); err != nil || resumed {
			return news, err
		}
	}
	learned, need := r.columns.learnedPages(c), min(t.Need, maxNeed)
	switch t.State {
	case program.MoreInput:
		if left := c.length - c.cursor.Page; need > left {
			return false, r.dataError(c, fmt.Sprintf("a page ends behind its chunk: %d bytes are wanted, %d are left",
				need, left))
		}
		news = news || c.cursor.Page+need > p.windowEnd
		c.inputBytes, c.rowsInWindow = need, t.RowsInWindow
		if c.cursor.Page == 0 {
			c.firstPageInput = max(c.firstPageInput, need)
		}
	case program.MoreDict:
		news = news || need > c.dictSegment.size
		c.dictBytes, learned.dictBytes = max(c.dictBytes, need), max(learned.dictBytes, need)
	case program.MoreScratch:
		news = news || need > c.scratchSegment.size
		c.scratchBytes, learned.scratchBytes = max(c.scratchBytes, need), max(learned.scratchBytes, need)
	case program.MoreOutput:
		news = news || need > r.output.valueCapacity()
		r.output.valuesWanted = max(r.output.valuesWanted, need)
	}
	return news, nil
}

// notePassedPages notes the cursor of a task that skipped pages, or decoded the dictionary, before it or an earlier
// task stopped for lack of memory or bytes. resumed reports whether the dictionary was decoded again and the chunk
// goes on where it was.
func (r *results) notePassedPages(c *chunk, t *program.TaskResult) (news, resumed bool, err error) {
	if t.Cursor.Page < c.cursor.Page {
		return false, false, r.contractError("a task went back from byte %d to %d", c.cursor.Page, t.Cursor.Page)
	}
	if news = t.Cursor.Page > c.cursor.Page || t.Cursor.Dict && !c.cursor.Dict; news {
		c.inputBytes = 0
	}
	c.moveCursor(t)
	c.dictionaryDecoded = c.dictionaryDecoded || t.Cursor.Dict
	if leaf := r.columns.leaves[c.column]; leaf != nil {
		c.noteWalkedPage(r.columns.partition, leaf.Index)
	}
	if c.resumeAt != nil && t.Cursor.Dict {
		c.resumeAfterDictionary()
		return true, true, nil
	}
	return news, false, nil
}

// faultError turns a slice that the engine gave up into an error.
func (r *results) faultError(res *program.Result) error {
	kind := partition.ErrData
	switch res.State {
	case program.BadData:
	case program.NoSupport:
		kind = partition.ErrUnsupported
	default:
		return r.contractError("%s", res.Message)
	}
	firstRow := r.batch.firstRow
	e := &partition.DataError{
		Partition: r.columns.partition.Name, RowGroup: -1, Page: -1, Row: firstRow, Message: res.Message, Err: kind,
	}
	for i, k := range r.builder.placed {
		if i >= len(res.Tasks) || res.Tasks[i].State < program.BadSlice {
			continue
		}
		p, t := &r.batch.portions[k], &res.Tasks[i]
		c := p.chunk
		at := c.cursor
		if t.Cursor.Page >= at.Page && t.Cursor != (program.Cursor{}) {
			at = t.Cursor
		}
		e.RowGroup, e.Column = r.columns.rowGroupNumber(c), r.columns.columnName(c)
		e.Row = firstRow + int64(p.firstRow) + int64(t.Rows)
		if r.columns.isTextSource() {
			e.Line = int64(at.Ordinal) + 1
			break
		}
		e.Page = int64(at.Ordinal)
		if place, why, ok := program.CutFaultLocation(e.Message); ok {
			e.Page, e.Offset, e.Message = int64(place.Page), int64(c.start+place.Offset), why
		}
		break
	}
	return e
}

// contractError returns the error of an answer that breaks the engine's contract.
func (r *results) contractError(format string, args ...any) error {
	return &target.EngineError{Partition: r.columns.partition.Name, State: r.state,
		Message: fmt.Sprintf(format, args...)}
}
