package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/fpga/unit/vocabulary"
)

// lookupTable is a lookup table of a compiled program.
type lookupTable struct {
	span   program.Span // of the tables range
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
		x.buffers.lookups = append(x.buffers.lookups, view)
	}
	return nil
}

// releaseLookups drops the references to the tables range.
func (b *buffers) releaseLookups() {
	clear(b.lookups)
	b.lookups = b.lookups[:0]
}

// lookup is the operator vocabulary.
type lookup struct {
	program.Lookup
	hasher *sigridhash.Hasher // AbsentBucket
}

func newLookup(o program.Lookup) (*lookup, error) {
	l := &lookup{Lookup: o}
	if o.Absent != program.AbsentBucket {
		return l, nil
	}
	var err error
	l.hasher, err = sigridhash.New(sigridhash.Params{Max: int64(o.Buckets)})
	return l, err
}

// lookupBlock is how many keys are looked up at once, so that keys and ids stay in the first-level cache.
const lookupBlock = 1024

// lookUp replaces the keys of v by their ids. Ids may lie in the memory of the keys.
func (b *buffers) lookUp(l *lookup, v *chainValues) error {
	table := &b.lookups[l.Table]
	dst := b.intDestination(v.count)
	for at := 0; at < v.count; at += lookupBlock {
		keys := b.lookupKeys[:copy(b.lookupKeys[:], v.int64s[at:v.count])]
		ids := dst[at:][:len(keys)]
		switch complete := table.Lookup(ids, keys); {
		case complete && l.Base == 0:
		case complete:
			for i := range ids {
				ids[i] += l.Base
			}
		default:
			if err := l.replaceAbsent(ids, keys, v, at); err != nil {
				return err
			}
		}
	}
	v.int64s, v.ownsValues = dst, true
	return nil
}

// replaceAbsent turns the indices of keys, which are the values of v from first on, into ids. Some of them are absent.
func (l *lookup) replaceAbsent(ids, keys []int64, v *chainValues, first int) error {
	for i, index := range ids {
		switch {
		case index >= 0:
			ids[i] += l.Base
		case v.valid != nil && v.valid[first+i] == 0:
			ids[i] = 0 // a null has no key
		case l.Absent == program.AbsentRare:
			ids[i] = l.Rare
		case l.Absent == program.AbsentBucket:
			l.hasher.Hash(ids[i:i+1], keys[i:i+1])
			ids[i] += l.Base - int64(l.Buckets)
		default:
			return &absentKeyError{key: keys[i], row: v.rowOf(first + i)}
		}
	}
	return nil
}

// rowOf returns the row of the block that a value belongs to.
func (v *chainValues) rowOf(value int) int {
	if !v.list {
		return value
	}
	for row, n := range v.lengths {
		if value -= int(n); value < 0 {
			return row
		}
	}
	return 0 // lengths cover all values
}

// absentKeyError says that a lookup table lacks a key.
type absentKeyError struct {
	key     int64
	row     int               // of the values that the chain was given
	located program.AbsentKey // once the sink and the rows are known
}

func (e *absentKeyError) Error() string {
	return fmt.Sprintf("vocabulary: the lookup table lacks the key %d", e.key)
}

// locateAbsentKey completes an error of a chain that ends in a sink, if it is about an absent key. The chain was given
// values from row first of the mini-batch on.
func locateAbsentKey(err error, s *sink, first uint64) {
	if e := (*absentKeyError)(nil); errors.As(err, &e) && s.tensor == program.ToSparse && !e.located.Given {
		e.located = program.AbsentKey{Given: true, Row: uint32(first) + uint32(e.row), Key: s.index, Value: e.key}
	}
}
