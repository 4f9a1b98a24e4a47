package processor

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// mostNeed bounds what an engine may ask for, so that sums of needs do not overflow.
const mostNeed = 1 << 60

// mostBarren bounds the slices in a row that write nothing and come to no new place, though each of them tells something
// new. Windows grow to what is asked for and lost dictionaries are decoded in a few; more means that memory is given to
// and fro between columns.
const mostBarren = 1 << 14

// patience is how many such slices, and four for every job, it takes until the jobs are placed one by one.
const patience = 32

// absorb takes in the result of a slice: rows written, cursors, and what was missing.
func (w *worker) absorb(ctx context.Context) error {
	res := &w.result
	if res.State >= program.BadSlice {
		return w.fault()
	}
	if res.State == program.Idle && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !w.r.prog.Output.Fixed && (res.Values < w.values || res.Values > w.valueCap()) {
		return w.against("it wrote %d values after %d, with room for %d", res.Values, w.values, w.valueCap())
	}
	w.values = res.Values
	progress, further := false, false
	for i, k := range w.seated {
		j, t := &w.jobs[k], &res.Tasks[i]
		if n := uint64(w.r.prog.Columns[j.c.column].Part); n > 1 && t.Rows != res.Tasks[i-int(n)+1].Rows {
			return w.against("task %d of a map wrote %d rows, its keys' %d", i, t.Rows, res.Tasks[i-int(n)+1].Rows)
		}
		if t.Rows > j.take || t.State == program.Done && t.Rows < j.take {
			return w.against("task %d wrote %d of %d rows and is %v", i, t.Rows, j.take, t.State)
		}
		if t.Cursor.Page > j.c.length {
			return w.against("task %d goes on at byte %d of %d", i, t.Cursor.Page, j.c.length)
		}
		if uint64(t.Page) > j.c.length-t.Cursor.Page || t.Cursor.Unpacked && t.Page == 0 && (t.Cursor.Page != j.c.cursor.Page || j.c.page == 0) {
			return w.against("task %d goes on in a page of %d bytes, %d from its chunk's end", i, t.Page, j.c.length-t.Cursor.Page)
		}
		if t.Rows > 0 {
			progress, further = true, true
			w.advance(j, t)
		}
		ok, err := w.missing(j, t)
		if err != nil {
			return err
		}
		progress = progress || ok
		if j.c.cursor.Page > j.c.reached {
			j.c.reached, further = j.c.cursor.Page, true
		}
	}
	for w.next0 < len(w.jobs) && w.jobs[w.next0].count == 0 {
		w.next0++
	}
	if w.barren++; further {
		w.barren = 0
	}
	w.alone = w.alone || w.barren > patience+4*len(w.jobs)
	if !progress || w.barren > mostBarren {
		return w.against("it asks for what it was given")
	}
	if w.most > w.valueCap() && !w.r.prog.Output.Fixed {
		return w.growOutput(ctx)
	}
	return nil
}

// advance notes rows that a task wrote.
func (w *worker) advance(j *job, t *program.TaskResult) {
	c := j.c
	c.row += int64(t.Rows)
	w.learn(c, t.Cursor)
	c.stand(t)
	c.need, c.resume = 0, nil
	c.had = t.Cursor.Dict
	j.row += t.Rows
	j.count -= t.Rows
	j.most = 2 * c.fit
	if c.row >= c.rows {
		w.drop(c)
		live := w.live[c.column]
		w.live[c.column] = slices.DeleteFunc(live, func(o *chunk) bool { return o == c })
	}
}

// learn notes what pages are like when a cursor, behind row c.row, has gone on from one to the next.
func (w *worker) learn(c *chunk, to program.Cursor) {
	if to.Ordinal <= c.cursor.Ordinal {
		return
	}
	k, begin, from := &w.learned[c.column], c.row-int64(min(to.Skip, uint64(c.row))), c.cursor
	if from.Page < c.data {
		// A dictionary page lies between.
		from.Page, from.Ordinal = c.data, from.Ordinal+1
	}
	if n := uint64(to.Ordinal - min(from.Ordinal, to.Ordinal)); n > 0 && to.Page > from.Page && to.Page < c.length {
		mean := (to.Page - from.Page + n - 1) / n
		k.page = max(mean, k.page-k.page/8)
		k.rows = max(begin-c.pageRow, 0) / int64(n)
	}
	c.pageRow = begin
}

// missing notes what a task that did not end lacks, and tells whether that is news.
func (w *worker) missing(j *job, t *program.TaskResult) (news bool, err error) {
	c, k := j.c, &w.learned[j.c.column]
	need := min(t.Need, mostNeed)
	switch t.State {
	case program.Done:
		return false, nil
	case program.Idle, program.MoreInput, program.MoreDict, program.MoreRoom, program.MoreOutput:
	default:
		return false, w.against("a task is %v in a slice that is %v", t.State, w.result.State)
	}
	if t.Rows == 0 && t.Cursor != c.cursor {
		// It passed over pages, or decoded the dictionary, before it or an earlier task ran out.
		if t.Cursor.Page < c.cursor.Page {
			return false, w.against("a task went back from byte %d to %d", c.cursor.Page, t.Cursor.Page)
		}
		news = t.Cursor.Page > c.cursor.Page || t.Cursor.Dict && !c.cursor.Dict
		if news {
			c.need = 0
		}
		c.stand(t)
		c.had = c.had || t.Cursor.Dict
		if leaf := w.leaves[c.column]; leaf != nil && t.Cursor.Page > 0 && c.resume == nil && c.cursor.Skip > 0 && int64(c.cursor.Skip) <= c.row {
			// Walking: the page's first row is worth knowing.
			at := *c
			at.row, at.cursor.Skip = c.row-int64(c.cursor.Skip), 0
			at.pageRow = at.row
			at.noteResume(w.part, leaf.Index)
		}
		if c.resume != nil && t.Cursor.Dict {
			c.cursor, c.resume = *c.resume, nil
			c.cursor.Dict = true
			return true, nil
		}
	}
	switch t.State {
	case program.MoreInput:
		left := c.length - c.cursor.Page
		if need > left {
			return false, &partition.DataError{Partition: w.part.Name, RowGroup: w.groupOf(c), Column: w.nameOf(c), Page: int64(c.cursor.Ordinal), Row: c.first + c.row,
				Message: fmt.Sprintf("a page ends behind its chunk: %d bytes are wanted, %d are left", need, left), Err: partition.ErrData}
		}
		s, from := w.span(c)
		news = news || need > from-c.cursor.Page+s.Len
		c.need, c.ready = need, t.Ready
		if c.cursor.Page == 0 {
			c.opening = max(c.opening, need)
		}
	case program.MoreDict:
		news = news || need > c.dict.size
		c.dictMin = max(c.dictMin, need)
		k.dict = max(k.dict, need)
	case program.MoreRoom:
		news = news || need > c.scratch.size
		c.roomMin = max(c.roomMin, need)
		k.room = max(k.room, need)
	case program.MoreOutput:
		news = news || need > w.valueCap()
		w.most = max(w.most, need)
	}
	return news, nil
}

// fault turns a slice that the engine gave up into an error.
func (w *worker) fault() error {
	res := &w.result
	kind := partition.ErrData
	switch res.State {
	case program.BadData:
	case program.NoSupport:
		kind = partition.ErrUnsupported
	default:
		return &target.EngineError{Partition: w.part.Name, State: res.State, Message: res.Message}
	}
	e := &partition.DataError{Partition: w.part.Name, RowGroup: -1, Page: -1, Row: w.row, Message: res.Message, Err: kind}
	for i, k := range w.seated {
		if i >= len(res.Tasks) || res.Tasks[i].State < program.BadSlice {
			continue
		}
		j := &w.jobs[k]
		c, t := j.c, &res.Tasks[i]
		at := c.cursor
		if t.Cursor.Page >= at.Page && t.Cursor != (program.Cursor{}) {
			at = t.Cursor
		}
		e.RowGroup, e.Column, e.Row = w.groupOf(c), w.nameOf(c), w.row+int64(j.row)+int64(t.Rows)
		if w.part.File != nil {
			e.Page = int64(at.Ordinal)
			if p, why, ok := program.CutPlace(e.Message); ok {
				e.Page, e.Offset, e.Message = int64(p.Page), int64(c.at+p.Offset), why
			}
		} else {
			e.Line = int64(at.Ordinal) + 1
		}
		break
	}
	return e
}

// against is an answer that breaks the engine's contract.
func (w *worker) against(format string, args ...any) error {
	return &target.EngineError{Partition: w.part.Name, State: w.result.State, Message: fmt.Sprintf(format, args...)}
}

func (w *worker) nameOf(c *chunk) string {
	if w.part.File == nil {
		return ""
	}
	return w.r.prog.Columns[c.column].Name
}

func (w *worker) groupOf(c *chunk) int {
	if w.part.File == nil {
		return -1
	}
	return c.group
}
