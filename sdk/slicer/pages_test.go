package slicer

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
)

// TestResumePointKeepsTheValue checks that a stream that begins where another stood takes the place of the row's value
// over, that one which begins behind it does not, and that neither does the first row of a page.
func TestResumePointKeepsTheValue(t *testing.T) {
	p := &partition.Partition{}
	stood := chunk{position: position{row: 40,
		cursor: program.Cursor{Page: 100, Skip: 10, ValueAt: 77, Unpacked: true, Checked: true}}}
	stood.noteResumePoint(p, 3)
	at := func(row int64) program.Cursor {
		c := chunk{position: position{row: row}}
		c.findResumePoint(p, 3)
		return c.cursor
	}
	assert.Equal(t, program.Cursor{Page: 100, Skip: 10, ValueAt: 77}, at(40))
	assert.Equal(t, program.Cursor{Page: 100, Skip: 12}, at(42))
	assert.Zero(t, at(39))

	stood.noteWalkedPage(p, 3)
	assert.Equal(t, program.Cursor{Page: 100}, at(30))
	assert.Equal(t, program.Cursor{Page: 100, Skip: 5}, at(35))
}

// TestResumePointKeepsThePagesBeginning checks that streams over a column of lists know of a page that it must begin
// with a row, wherever in the page they begin.
func TestResumePointKeepsThePagesBeginning(t *testing.T) {
	p := &partition.Partition{}
	lists := chunkLayout{kind: program.ChunkType{MaxRep: 1}}
	stood := chunk{chunkLayout: lists, position: position{row: 40,
		cursor: program.Cursor{Page: 100, Skip: 10, ValueAt: program.PageBeginsRow}}}
	stood.noteWalkedPage(p, 3)
	for row, skip := range map[int64]uint64{30: 0, 35: 5} {
		c := chunk{chunkLayout: lists, position: position{row: row}}
		c.findResumePoint(p, 3)
		assert.Equal(t, program.Cursor{Page: 100, Skip: skip, ValueAt: program.PageBeginsRow}, c.cursor)
	}
}
