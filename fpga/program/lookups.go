package program

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Limits of lookup tables.
const (
	MaxLookupTables = 1 << 16   // of a program
	MaxLookupBytes  = 1<<32 - 1 // of all tables together: the length of a memory range of the standard command set
	maxLookupProbes = 1 << 10   // LookupTable.Probes
	arrayEntryBytes = 4
	slotEntryBytes  = 16
)

// TableDigest is the SHA-256 of a lookup table's bytes.
type TableDigest [32]byte

// String returns the digest in hexadecimal.
func (d TableDigest) String() string { return hex.EncodeToString(d[:]) }

// LookupTable is a table of keys and their indices that lies in the tables range, because it is too large for a
// program's own bytes. The engine checks the digest before it uses a table, see [Slice.TablesChecked]. Package
// fpga/unit/vocabulary makes and reads the bytes.
type LookupTable struct {
	Offset uint64      // Offset is where the table begins in the tables range, a multiple of Align.
	Digest TableDigest // Digest is that of the bytes.

	Hashed     bool
	Entries    uint64 // 4 bytes each, or 16 if the table is hashed; then a power of two
	Keys       uint32 // Keys count those that have an index, from 0 on.
	Least      int64  // the key of the first entry; 0 if the table is hashed
	Multiplier uint64 // odd if the table is hashed, else 0
	Probes     uint32 // entries at which a lookup looks at most if the table is hashed, else 0

	// Stored are the bytes and Listed the keys in order of their indices, where they are at hand. They are not part of the
	// wire form.
	Stored []byte
	Listed []int64
}

// Bytes returns the length of the table.
func (t *LookupTable) Bytes() uint64 {
	if t.Hashed {
		return slotEntryBytes * t.Entries
	}
	return arrayEntryBytes * t.Entries
}

// TablesBytes returns the length of the tables range: the end of the last lookup table, or 0 without any.
func (p *Program) TablesBytes() uint64 {
	n := uint64(0)
	for i := range p.LookupTables {
		n = max(n, p.LookupTables[i].Offset+p.LookupTables[i].Bytes())
	}
	return n
}

// validateLookups checks the lookup tables, which lie one behind the other, and that every table is used.
func (p *Program) validateLookups() error {
	if len(p.LookupTables) > MaxLookupTables {
		return fmt.Errorf("%d lookup tables, want at most %d", len(p.LookupTables), MaxLookupTables)
	}
	end := uint64(0)
	for i := range p.LookupTables {
		t := &p.LookupTables[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("lookup table %d: %w", i, err)
		}
		if t.Offset%Align != 0 || t.Offset < end || t.Offset > MaxLookupBytes || t.Bytes() > MaxLookupBytes-t.Offset {
			return fmt.Errorf("lookup table %d: bytes %d+%d, want a multiple of %d from %d on, and an end of at most %d", i,
				t.Offset, t.Bytes(), Align, end, uint64(MaxLookupBytes))
		}
		end = t.Offset + t.Bytes()
	}
	used := make([]bool, len(p.LookupTables))
	var err error
	p.ForEachOp(func(op Op) {
		user, ok := op.(lookupUser)
		switch {
		case !ok || err != nil:
		case uint64(user.LookupTable()) >= uint64(len(used)):
			err = fmt.Errorf("%v: lookup table %d of %d", op.Unit(), user.LookupTable(), len(used))
		default:
			used[user.LookupTable()] = true
		}
	})
	for i, is := range used {
		if err == nil && !is {
			err = fmt.Errorf("nothing uses lookup table %d", i)
		}
	}
	return err
}

// check checks the numbers of a table but its place.
func (t *LookupTable) check() error {
	switch {
	case t.Entries > MaxLookupBytes/arrayEntryBytes, t.Hashed && t.Entries > MaxLookupBytes/slotEntryBytes:
		return fmt.Errorf("%d entries, want at most %d bytes", t.Entries, uint64(MaxLookupBytes))
	case uint64(t.Keys) > t.Entries || t.Keys > 1<<31-1:
		return fmt.Errorf("%d keys in %d entries", t.Keys, t.Entries)
	case !t.Hashed && (t.Multiplier != 0 || t.Probes != 0), t.Hashed && t.Least != 0:
		return errors.New("it is an array and hashed")
	case !t.Hashed:
	case t.Entries < 2 || t.Entries&(t.Entries-1) != 0:
		return fmt.Errorf("%d entries, want a power of two of at least 2", t.Entries)
	case t.Multiplier&1 == 0:
		return fmt.Errorf("the multiplier %#x is even", t.Multiplier)
	case t.Probes < 1 || t.Probes > maxLookupProbes:
		return fmt.Errorf("%d probes, want 1 to %d", t.Probes, maxLookupProbes)
	}
	return nil
}
