package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// lookupTable is a lookup table of a compiled program.
type lookupTable struct {
	span   program.Span // The tables range holds it.
	shape  vocabulary.Shape
	digest program.TableDigest
}

// compileLookupTables checks the shapes of a program's lookup tables.
func compileLookupTables(tables []program.LookupTable) ([]lookupTable, error) {
	var list []lookupTable
	for i := range tables {
		t := &tables[i]
		shape := vocabulary.Shape{Hashed: t.Hashed, Entries: t.Entries, Keys: t.Keys, Least: t.Least,
			Multiplier: t.Multiplier, Probes: t.Probes}
		if err := shape.Check(); err != nil {
			return nil, fmt.Errorf("lookup table %d: %w", i, err)
		}
		list = append(list, lookupTable{program.Span{Off: t.Offset, Len: t.Bytes()}, shape, t.Digest})
	}
	return list, nil
}

// openTables makes the program's lookup tables ready over the tables range. It verifies their digests unless the slice
// says that they were verified. A table's bytes may change afterwards: lookups then yield other ids, and do no harm.
func (x *executor) openTables() error {
	for i := range x.program.lookups {
		t := &x.program.lookups[i]
		b, ok := spanBytes(x.memory.Tables, t.span)
		if !ok {
			return sliceError("lookup table %d at bytes %d+%d of a range of %d", i, t.span.Off, t.span.Len,
				len(x.memory.Tables))
		}
		if !x.slice.TablesChecked {
			if x.ctx.Err() != nil {
				return &stateError{program.Idle, context.Cause(x.ctx)}
			}
			if got := program.TableDigest(sha256.Sum256(b)); got != t.digest {
				return &stateError{program.BadTable, fmt.Errorf("lookup table %d is damaged: the tables range holds %.16v, "+
					"the program names %.16v: store the table again", i, got, t.digest)}
			}
		}
		view, err := vocabulary.View(t.shape, b)
		if err != nil {
			return sliceError("lookup table %d: %w", i, err)
		}
		x.buffers.Lookups = append(x.buffers.Lookups, view)
	}
	return nil
}

// locateAbsentKey completes an error of a chain that ends in a sink, if it is about an absent key. The chain was given
// values from row first of the mini-batch on.
func locateAbsentKey(err error, s *sink, first uint64) {
	if e := (*block.AbsentKeyError)(nil); errors.As(err, &e) && s.tensor == program.ToSparse && !e.Located.Given {
		e.Located = program.AbsentKey{Given: true, Row: uint32(first) + uint32(e.Row), Key: s.index, Value: e.Key}
	}
}
