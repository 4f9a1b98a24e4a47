package stock

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
)

// lookupsVector is a known answer for lookups, over packed rows: the keys 3, 9 and 4 have the indices 0, 1 and 2 in an
// array from 3 to 9, and 10 the index 0 in a hash table of two slots, of which every key's home is slot 0 or 1.
func lookupsVector() image.Vector {
	le := binary.LittleEndian
	var array, slots []byte
	for _, next := range []uint32{1, 3, 0, 0, 0, 0, 2} { // of the keys 3 to 9
		array = le.AppendUint32(array, next)
	}
	for range 2 { // the key lies in both slots, so that it is found wherever the hash begins
		slots = le.AppendUint32(le.AppendUint32(le.AppendUint64(slots, 10), 1), 0)
	}
	tables := append(append(array, make([]byte, program.Align-len(array))...), slots...)
	p := &program.Program{Source: program.CriteoBinary}
	sparse := func(key uint32, ops ...program.Op) {
		p.Columns = append(p.Columns, program.Column{Name: "cat", Field: uint16(14 + key), Kind: program.Int64,
			Sinks: []program.Sink{{To: program.ToSparse, Index: key, Ops: ops}}})
	}
	sparse(0, vocabulary.Op{Table: 0, Absent: vocabulary.AbsentRare, Base: 100, Rare: 1})
	sparse(1, vocabulary.Op{Table: 1, Absent: vocabulary.AbsentBucket, Base: 7, Buckets: 1})
	p.LookupTables = []program.LookupTable{
		{Digest: sha256.Sum256(array), Entries: 7, Keys: 3, Least: 3},
		{Digest: sha256.Sum256(slots), Offset: program.Align, Hashed: true, Entries: 2, Keys: 1, Multiplier: 1, Probes: 2},
	}
	p.Output = program.Output{Keys: 2, IDs: program.IDs64, Fixed: true}
	v := packedVector("lookups", p, []int{14, 15}, [][]uint32{{4, 10}, {5, 11}}, packedAnswer{
		values: []uint64{102, 1, 7, 6}, // an absent key: the rare id, and the only bucket below 7
	})
	v.Tables = tables
	return v
}
