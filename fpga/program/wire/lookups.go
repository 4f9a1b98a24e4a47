package wire

import "github.com/millrace/millrace/fpga/program"

// appendLookupTables appends the section of lookup tables.
func appendLookupTables(p *program.Program, b []byte) []byte {
	b = le.AppendUint32(b, uint32(len(p.LookupTables)))
	b = le.AppendUint32(b, 0)
	for i := range p.LookupTables {
		t := &p.LookupTables[i]
		b = append(b, t.Digest[:]...)
		for _, n := range []uint64{t.Offset, t.Entries, uint64(t.Least), t.Multiplier} {
			b = le.AppendUint64(b, n)
		}
		b = le.AppendUint32(le.AppendUint32(b, t.Keys), t.Probes)
		b = append(b, boolBit(t.Hashed), 0, 0, 0, 0, 0, 0, 0)
	}
	return b
}

// readLookupTables reads the section of lookup tables, which is written only if there are some.
func readLookupTables(p *program.Program, r *reader) {
	head := r.takeBytes(8, "lookup tables")
	if r.err != nil {
		return
	}
	r.checkZeros(head[4:], "lookup tables")
	n := r.checkCount(uint64(le.Uint32(head)), program.MaxLookupTables, lookupTableSize, "lookup tables")
	if n == 0 {
		r.failCorrupt("a section of no lookup tables, which is said by leaving the section out")
		return
	}
	p.LookupTables = make([]program.LookupTable, n)
	for i := range p.LookupTables {
		b := r.takeBytes(lookupTableSize, "lookup table")
		if r.err != nil {
			return
		}
		p.LookupTables[i] = program.LookupTable{
			Digest: program.TableDigest(b[:32]), Offset: le.Uint64(b[32:]), Entries: le.Uint64(b[40:]),
			Least:      int64(le.Uint64(b[48:])),
			Multiplier: le.Uint64(b[56:]), Keys: le.Uint32(b[64:]), Probes: le.Uint32(b[68:]),
			Hashed: r.readBool(b[72], "hashed"),
		}
		r.checkZeros(b[73:], "lookup table")
	}
}
