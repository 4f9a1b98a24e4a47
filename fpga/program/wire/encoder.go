package wire

import "github.com/millrace/millrace/fpga/program"

// Marshal returns the program's wire form. The program must be valid; Unmarshal refuses the bytes of an invalid
// program.
// The same program always has the same bytes.
func Marshal(p *program.Program) []byte {
	b := []byte(magic)
	b = le.AppendUint16(b, Major)
	maps, narrowDense := p.HasMaps(), p.Output.DenseType != program.DenseFloat32
	minor, sections := uint16(0), uint32(sectionOutput)
	if maps {
		minor, sections = 1, sections+1
	}
	if narrowDense {
		minor, sections = 2, sections+1
	}
	if len(p.Graphs) > 0 {
		minor, sections = 3, sections+1
	}
	if mayLackColumns(p) {
		minor = 4
	}
	if scoresGraphs(p) || mapsInGraphs(p) {
		minor = 5
	}
	texts := picksTexts(p)
	if texts {
		minor, sections = 6, sections+1
	}
	if len(p.LookupTables) > 0 {
		minor, sections = 7, sections+1
	}
	if mapsToBytes(p) {
		minor = 8
	}
	if refusesNumbers(p) || readsAnnotations(p) {
		minor = 9
	}
	if hasTexts(p) || listsOfGraphsAreDense(p) {
		minor = 10
	}
	minor = max(minor, minorOfOperators(p))
	b = le.AppendUint16(b, minor)
	b = le.AppendUint32(b, sections)
	b = append(b, make([]byte, headerSize-lengthOffset)...) // length, checksum: known at the end

	b = appendSection(b, sectionSource, func(b []byte) []byte {
		return append(b, byte(p.Source), boolBit(p.Label), byte(p.Malformed), 0, 0, 0, 0, 0)
	})
	tables := collectTables(p)
	b = appendSection(b, sectionTables, func(b []byte) []byte {
		b = le.AppendUint32(b, uint32(len(tables)))
		b = le.AppendUint32(b, 0)
		for _, t := range tables {
			b = appendTable(t, b)
		}
		return b
	})
	b = appendSection(b, sectionColumns, func(b []byte) []byte {
		b = le.AppendUint32(b, uint32(len(p.Columns)))
		b = le.AppendUint32(b, 0)
		for i := range p.Columns {
			b = appendColumn(&p.Columns[i], b, tables)
		}
		return b
	})
	b = appendSection(b, sectionOutput, func(b []byte) []byte {
		o := p.Output
		b = append(b, boolBit(o.Label), byte(o.IDs), boolBit(o.Fixed), 0)
		b = le.AppendUint32(b, o.Dense)
		b = le.AppendUint32(b, o.Keys)
		return le.AppendUint32(b, 0)
	})
	if maps {
		b = appendSection(b, sectionMaps, func(b []byte) []byte { return appendMaps(p, b) })
	}
	if narrowDense {
		b = appendSection(b, sectionDense, func(b []byte) []byte {
			return append(b, byte(p.Output.DenseType), 0, 0, 0, 0, 0, 0, 0)
		})
	}
	if len(p.Graphs) > 0 {
		b = appendSection(b, sectionGraphs, func(b []byte) []byte { return appendGraphs(p, b, tables) })
	}
	if texts {
		b = appendSection(b, sectionTexts, func(b []byte) []byte { return appendTexts(p, b) })
	}
	if len(p.LookupTables) > 0 {
		b = appendSection(b, sectionLookups, func(b []byte) []byte { return appendLookupTables(p, b) })
	}

	le.PutUint64(b[lengthOffset:], uint64(len(b)))
	le.PutUint32(b[crcOffset:], checksum(b))
	return b
}

// appendSection appends a required section.
func appendSection(b []byte, id uint16, payload func([]byte) []byte) []byte {
	b = le.AppendUint16(b, id)
	b = le.AppendUint16(b, flagRequired)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, 0)
	start := len(b)
	b = payload(b)
	le.PutUint64(b[start-8:], uint64(len(b)-start))
	return padTo8Bytes(b, start)
}

func appendColumn(c *program.Column, b []byte, tables []program.Table) []byte {
	b = append(b, byte(c.Kind), boolBit(c.List))
	b = le.AppendUint16(b, c.Field)
	b = le.AppendUint32(b, uint32(len(c.Name)))
	b = le.AppendUint32(b, uint32(len(c.Sinks)))
	b = append(b, boolBit(c.Absent)*columnAbsent|boolBit(c.FitsInt64)*columnFitsInt64|byte(c.Reading)*columnReading, 0,
		0, 0)
	start := len(b)
	b = padTo8Bytes(append(b, c.Name...), start)
	for i := range c.Sinks {
		b = appendSink(&c.Sinks[i], b, tables)
	}
	return b
}

func appendSink(s *program.Sink, b []byte, tables []program.Table) []byte {
	b = append(b, byte(s.To), byte(s.Refuses), 0, 0)
	b = le.AppendUint32(b, s.Index)
	b = le.AppendUint32(b, uint32(len(s.Ops)))
	b = le.AppendUint32(b, 0)
	for _, op := range s.Ops {
		b = appendOp(b, op, tables)
	}
	return b
}
