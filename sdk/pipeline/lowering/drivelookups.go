package lowering

import (
	"crypto/sha256"
	"slices"

	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// driveTables are the lookup tables of a program. nil has none.
type driveTables struct {
	list  []program.LookupTable
	table map[int]uint32 // by key: index in list
}

// LookUpInDrive lowers the pipeline again, so that the program looks up the ids of as many tables as fit together in a
// number of bytes of a drive's memory, the smallest first. Lookups then has those of the other keys. The mini-batches
// of the job stay the same. Two kinds of lookups are left out: those that drop keys, and where a filter drops rows
// later, those that fail for a key which a dropped row may have. Ids that a vocabulary keeps are not looked up.
func (l *Lowered) LookUpInDrive(memory uint64) (*Lowered, error) {
	type candidate struct {
		keys  []int64
		bytes uint64
		users []int // keys of the keyed jagged tensor
	}
	var all []*candidate
	byMemory := map[*int64]*candidate{}
	for i := range l.resolved.Keys {
		f := &l.resolved.Keys[i]
		if f.LookUp() == nil || len(f.Ops) > program.MaxOps-2 || l.Lookups[i] != nil && l.Lookups[i].Kept() {
			continue
		}
		o, ok := f.LookUp().Operator()
		keys, atHand := f.LookUp().Listed()
		if !ok || !atHand || len(keys) == 0 || l.Selection != nil && o.Absent == vocabulary.AbsentFail {
			continue
		}
		c := byMemory[&keys[0]]
		if c == nil {
			c = &candidate{keys: keys, bytes: alignedSize(unit.ShapeOf(keys).Bytes())}
			byMemory[&keys[0]] = c
			all = append(all, c)
		}
		c.users = append(c.users, i)
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		if a.bytes < b.bytes {
			return -1
		}
		return min(1, int(a.bytes-b.bytes))
	})
	tables := &driveTables{table: map[int]uint32{}}
	memory = min(memory, program.MaxLookupBytes)
	at := uint64(0)
	for _, c := range all {
		if c.bytes > memory-at {
			break
		}
		shape, b, err := unit.Store(c.keys)
		if err != nil {
			return nil, err
		}
		for _, key := range c.users {
			tables.table[key] = uint32(len(tables.list))
		}
		tables.list = append(tables.list, program.LookupTable{
			Offset: at, Digest: sha256.Sum256(b), Hashed: shape.Hashed, Entries: shape.Entries, Keys: shape.Keys,
			Least: shape.Least, Multiplier: shape.Multiplier, Probes: shape.Probes, Stored: b, Listed: c.keys,
		})
		at += c.bytes
	}
	if len(tables.list) == 0 {
		return l, nil
	}
	return lowerWithTables(l.resolved, tables)
}

// all returns the tables.
func (t *driveTables) all() []program.LookupTable {
	if t == nil {
		return nil
	}
	return t.list
}

// alignedSize rounds a number of bytes up to the alignment of tables.
func alignedSize(n uint64) uint64 { return (n + program.Align - 1) &^ (program.Align - 1) }

// replaceLookup makes the lookup of key i an operator of the feature, and reports whether its table is in the drive.
func (t *driveTables) replaceLookup(f *resolve.Feature, i int) bool {
	if t == nil {
		return false
	}
	table, ok := t.table[i]
	if !ok {
		return false
	}
	o, _ := f.LookUp().Operator() // LookUpInDrive has asked
	o.Table = table
	if id, given := f.LookUp().NullID(); given {
		f.LookUpBy(true, o, fillnull.Op{Int: id})
	} else {
		f.LookUpBy(false, o)
	}
	return true
}
