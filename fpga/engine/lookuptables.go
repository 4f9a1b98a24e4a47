package engine

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/millrace/millrace/fpga/engine/failure"
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
		b, ok := t.span.In(x.memory.Tables)
		if !ok {
			return failure.Slice("lookup table %d at bytes %d+%d of a range of %d", i, t.span.Off, t.span.Len,
				len(x.memory.Tables))
		}
		if !x.slice.TablesChecked {
			if x.ctx.Err() != nil {
				return failure.New(program.Idle, context.Cause(x.ctx))
			}
			if got := program.TableDigest(sha256.Sum256(b)); got != t.digest {
				return failure.New(program.BadTable, fmt.Errorf("lookup table %d is damaged: the tables range holds %.16v, "+
					"the program names %.16v: store the table again", i, got, t.digest))
			}
		}
		view, err := vocabulary.View(t.shape, b)
		if err != nil {
			return failure.Slice("lookup table %d: %w", i, err)
		}
		x.buffers.Lookups = append(x.buffers.Lookups, view)
	}
	return nil
}
