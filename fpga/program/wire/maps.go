package wire

import "github.com/millrace/millrace/fpga/program"

// appendMaps appends the section of maps.
func appendMaps(p *program.Program, b []byte) []byte {
	texts := textNumbers{}
	n := uint32(0)
	for i := range p.Columns {
		if p.Columns[i].LeafPart() != program.NoPart {
			n++
		}
	}
	b = le.AppendUint32(b, n)
	b = append(b, boolBit(p.Output.Weights), 0, 0, 0)
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.LeafPart() == program.NoPart {
			continue
		}
		b = le.AppendUint32(b, uint32(i))
		b = append(b, byte(c.LeafPart()), 0, 0, 0)
		b = le.AppendUint32(b, uint32(len(c.Picks)))
		b = le.AppendUint32(b, 0)
		for _, k := range c.Picks {
			if p.TextKeys(i) {
				k.Key = int64(texts.number(k.Text))
			}
			b = le.AppendUint64(b, uint64(k.Key))
			b = append(b, boolBit(k.Scored), 0, 0, 0, 0, 0, 0, 0)
		}
	}
	return b
}

// readMaps reads the section of maps, behind that of the columns.
func readMaps(p *program.Program, r *reader) {
	head := r.takeBytes(8, "maps")
	if r.err != nil {
		return
	}
	p.Output.Weights = r.readBool(head[4], "weights")
	r.checkZeros(head[5:], "maps")
	last := -1
	parts := r.checkCount(uint64(le.Uint32(head)), program.MaxColumns, partSize, "parts of maps")
	if r.err == nil && parts == 0 {
		r.failCorrupt("a section of maps without one")
	}
	for range parts {
		b := r.takeBytes(partSize, "part")
		if r.err != nil {
			return
		}
		i := int(le.Uint32(b))
		if i <= last || i >= len(p.Columns) || !program.Part(b[4]).OfMap() {
			r.failCorrupt("part %v of column %d of %d, behind column %d", program.Part(b[4]), i, len(p.Columns), last)
			return
		}
		last = i
		c := &p.Columns[i]
		c.Part = program.Part(b[4])
		r.checkZeros(b[5:8], "part")
		r.checkZeros(b[12:], "part")
		n := r.checkCount(uint64(le.Uint32(b[8:])), program.MaxSinks, pickSize, "keys")
		if n == 0 {
			continue
		}
		c.Picks = make([]program.Pick, n)
		for j := range c.Picks {
			k := r.takeBytes(pickSize, "key")
			if r.err != nil {
				return
			}
			c.Picks[j] = program.Pick{Key: int64(le.Uint64(k)), Scored: r.readBool(k[8], "scored")}
			r.checkZeros(k[9:], "key")
		}
	}
}
