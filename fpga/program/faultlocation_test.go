package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/fpga/program"
)

func TestPlace(t *testing.T) {
	for _, p := range []program.FaultLocation{{}, {"c", 3, 4023},
		{`a "b": page 1 at byte 2 of its chunk: `, 1<<32 - 1, 1<<64 - 1},
		{"a\x00é\n", 1, 2}} {
		got, fault, ok := program.CutFaultLocation(p.String() + ": why: page 1 at byte 2 of its chunk: ")
		assert.True(t, ok, p)
		assert.Equal(t, p, got)
		assert.Equal(t, "why: page 1 at byte 2 of its chunk: ", fault)
	}
	long := program.FaultLocation{Column: strings.Repeat("x", 4096)}
	assert.Less(t, len(long.String()), program.MaxMessage/2, "the fault must have room")
	got, _, ok := program.CutFaultLocation(long.String() + ": why")
	assert.True(t, ok)
	assert.Equal(t, long.Column[:80], got.Column)
	for _, message := range []string{"", "column", `column "c`, `column "c": why`,
		`column "c": page 3 at byte x of its chunk: why`, "slice: why",
		`column "c": page 3 at byte 4 of its chunk`} {
		_, fault, ok := program.CutFaultLocation(message)
		assert.False(t, ok, message)
		assert.Equal(t, message, fault)
	}
}

// FuzzCutFaultLocation splits any text, and joins the parts again.
func FuzzCutFaultLocation(f *testing.F) {
	f.Add(`column "c": page 3 at byte 4023 of its chunk: why`)
	f.Add(`column "\x00\u00e9": page -1 at byte 18446744073709551616 of its chunk: `)
	f.Fuzz(func(t *testing.T, message string) {
		p, fault, ok := program.CutFaultLocation(message)
		if !ok {
			assert.Equal(t, message, fault)
			return
		}
		again, why, ok := program.CutFaultLocation(p.String() + ": " + fault)
		assert.True(t, ok)
		assert.Equal(t, fault, why)
		assert.Equal(t, p.Page, again.Page)
		assert.Equal(t, p.Offset, again.Offset)
	})
}
