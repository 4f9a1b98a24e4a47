package program

import "slices"

// Marshal returns the program's wire form. The program must be valid; Unmarshal refuses the bytes of an invalid
// program.
func (p *Program) Marshal() []byte { return p.AppendTo(nil) }

// AppendTo appends the program's wire form to b. The same program always has the same bytes.
func (p *Program) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = le.AppendUint16(b, Major)
	maps, narrowDense := p.hasMaps(), p.Output.DenseType != DenseFloat32
	minor, sections := uint16(0), uint32(sectionOutput)
	if maps {
		minor, sections = 1, sections+1
	}
	if narrowDense {
		minor, sections = 2, sections+1
	}
	if p.hasGraphs() {
		minor, sections = 3, sections+1
	}
	if p.mayLackColumns() {
		minor = 4
	}
	if p.scoresGraphs() || p.mapsInGraphs() {
		minor = 5
	}
	texts := p.picksTexts()
	if texts {
		minor, sections = 6, sections+1
	}
	if len(p.LookupTables) > 0 {
		minor, sections = 7, sections+1
	}
	if p.mapsToBytes() {
		minor = 8
	}
	if p.refusesNumbers() || p.readsAnnotations() {
		minor = 9
	}
	if p.hasTexts() || p.listsOfGraphsAreDense() {
		minor = 10
	}
	minor = max(minor, p.minorOfOperators())
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
			b = t.appendTo(b)
		}
		return b
	})
	b = appendSection(b, sectionColumns, func(b []byte) []byte {
		b = le.AppendUint32(b, uint32(len(p.Columns)))
		b = le.AppendUint32(b, 0)
		for i := range p.Columns {
			b = p.Columns[i].appendTo(b, tables)
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
		b = appendSection(b, sectionMaps, p.appendMaps)
	}
	if narrowDense {
		b = appendSection(b, sectionDense, func(b []byte) []byte {
			return append(b, byte(p.Output.DenseType), 0, 0, 0, 0, 0, 0, 0)
		})
	}
	if p.hasGraphs() {
		b = appendSection(b, sectionGraphs, func(b []byte) []byte { return p.appendGraphs(b, tables) })
	}
	if texts {
		b = appendSection(b, sectionTexts, p.appendTexts)
	}
	if len(p.LookupTables) > 0 {
		b = appendSection(b, sectionLookups, p.appendLookupTables)
	}

	whole := b[start:]
	le.PutUint64(whole[lengthOffset:], uint64(len(whole)))
	le.PutUint32(whole[crcOffset:], checksum(whole))
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

// mayLackColumns reports whether partitions may lack a column.
func (p *Program) mayLackColumns() bool { return p.anyColumn(func(c *Column) bool { return c.Absent }) }

// listsOfGraphsAreDense reports whether lists that a graph makes become dense columns.
func (p *Program) listsOfGraphsAreDense() bool {
	return slices.ContainsFunc(p.Graphs, func(g Graph) bool {
		return slices.ContainsFunc(g.Sinks, func(s GraphSink) bool {
			end := s.Sink.denseEnd()
			return end != nil && end.EndsLists()
		})
	})
}

// anyColumn reports whether a column has a property.
func (p *Program) anyColumn(has func(c *Column) bool) bool {
	for i := range p.Columns {
		if has(&p.Columns[i]) {
			return true
		}
	}
	return false
}

// refusesNumbers reports whether a sink refuses real numbers, or a column integers.
func (p *Program) refusesNumbers() bool {
	refuses := func(s Sink) bool { return s.Refuses != RefusesNothing }
	return p.anyColumn(func(c *Column) bool {
		return c.FitsInt64 || slices.ContainsFunc(c.Sinks, refuses)
	}) || slices.ContainsFunc(p.Graphs, func(g Graph) bool {
		return slices.ContainsFunc(g.Sinks, func(s GraphSink) bool { return refuses(s.Sink) })
	})
}

// minorOfOperators returns the least minor version that has every operator.
func (p *Program) minorOfOperators() (minor uint16) {
	p.forEachOp(func(op Op) { minor = max(minor, minorOf(op)) })
	return minor
}

func (c *Column) appendTo(b []byte, tables []Table) []byte {
	b = append(b, byte(c.Kind), boolBit(c.List))
	b = le.AppendUint16(b, c.Field)
	b = le.AppendUint32(b, uint32(len(c.Name)))
	b = le.AppendUint32(b, uint32(len(c.Sinks)))
	b = append(b, boolBit(c.Absent)*columnAbsent|boolBit(c.FitsInt64)*columnFitsInt64|byte(c.Reading)*columnReading, 0,
		0, 0)
	start := len(b)
	b = padTo8Bytes(append(b, c.Name...), start)
	for i := range c.Sinks {
		b = c.Sinks[i].appendTo(b, tables)
	}
	return b
}

func (s *Sink) appendTo(b []byte, tables []Table) []byte {
	b = append(b, byte(s.To), byte(s.Refuses), 0, 0)
	b = le.AppendUint32(b, s.Index)
	b = le.AppendUint32(b, uint32(len(s.Ops)))
	b = le.AppendUint32(b, 0)
	for _, op := range s.Ops {
		b = appendOp(b, op, tables)
	}
	return b
}
