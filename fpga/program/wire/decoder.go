package wire

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// Unmarshal decodes a program of a build's operators and validates it. b must be the whole program and nothing else;
// the program keeps no part of b. Equal operators with tables are one operator in the program, and operators that
// share a table share its memory.
func Unmarshal(b []byte, operators program.Operators) (*program.Program, error) {
	r, sections, err := readProgramHeader(b)
	if err != nil {
		return nil, err
	}
	p := new(program.Program)
	tables := newTableSet(0, operators) // of a program that lacks the section, which is an error in the end
	last, texts := uint16(0), false
	need := map[uint16]bool{sectionSource: true, sectionTables: true, sectionColumns: true, sectionOutput: true}
	for range sections {
		head := r.takeBytes(sectionSize, "section")
		if r.err != nil {
			return nil, r.err
		}
		id, flags, n := le.Uint16(head), le.Uint16(head[2:]), le.Uint64(head[8:])
		if id <= last {
			r.failCorrupt("section %d behind section %d", id, last)
		}
		last = id
		if flags&^flagRequired != 0 || id <= sectionLookups && flags != flagRequired {
			r.failCorrupt("section %d has flags %#x", id, flags)
		}
		r.checkZeros(head[4:8], "section")
		at := r.at
		s := reader{what: r.what, b: r.takePadded(n, fmt.Sprintf("section %d", id)), at: at, err: r.err}
		switch id {
		case sectionSource:
			readSource(p, &s)
		case sectionTables:
			tables = readTables(&s, operators)
		case sectionColumns:
			readColumns(p, &s, &tables)
		case sectionOutput:
			readOutput(p, &s)
		case sectionMaps:
			readMaps(p, &s)
		case sectionDense:
			readDense(p, &s)
		case sectionGraphs:
			readGraphs(p, &s, &tables)
		case sectionTexts:
			readTexts(p, &s)
			texts = true
		case sectionLookups:
			readLookupTables(p, &s)
		default:
			if s.err == nil && flags&flagRequired != 0 {
				return nil, &UnknownError{Section: id}
			}
			s.b = nil // unknown and optional: skipped
		}
		delete(need, id)
		if s.err == nil && len(s.b) != 0 {
			s.failCorrupt("section %d ends with %d bytes that nothing uses", id, len(s.b))
		}
		if s.err != nil {
			return nil, s.err
		}
	}
	for id := uint16(sectionSource); id <= sectionOutput; id++ {
		if need[id] {
			return nil, corruptError(r.what, "section %d is missing", id)
		}
	}
	if len(r.b) != 0 {
		return nil, corruptError(r.what, "%d bytes behind the last section", len(r.b))
	}
	if i := slices.Index(tables.used, false); i >= 0 {
		return nil, corruptError(r.what, "nothing uses table %d", i)
	}
	if err := checkTexts(p, texts); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// readProgramHeader checks the header. It returns a reader of the bytes behind the header, and the number of sections.
func readProgramHeader(b []byte) (*reader, uint32, error) {
	r := &reader{what: "program", b: b}
	head := r.takeBytes(headerSize, "header")
	if r.err != nil {
		return nil, 0, r.err
	}
	if string(head[:8]) != magic {
		return nil, 0, corruptError(r.what, "begins with %q, want %q", head[:8], magic)
	}
	if major := le.Uint16(head[8:]); major != Major {
		return nil, 0, fmt.Errorf("program: %w %d.%d, want %d.x", ErrVersion, major, le.Uint16(head[10:]), Major)
	}
	if n := le.Uint64(head[lengthOffset:]); n != uint64(len(b)) {
		return nil, 0, corruptError(r.what, "says it has %d bytes, %d are here", n, len(b))
	}
	if len(b) > program.MaxSize {
		return nil, 0, corruptError(r.what, "%d bytes, want at most %d", len(b), program.MaxSize)
	}
	if want, got := le.Uint32(head[crcOffset:]), checksum(b); want != got {
		return nil, 0, corruptError(r.what, "checksum %08x, want %08x", got, want)
	}
	r.checkZeros(head[crcOffset+4:], "header")
	return r, le.Uint32(head[12:]), r.err
}

func readSource(p *program.Program, r *reader) {
	b := r.takeBytes(sourceSize, "source")
	if r.err != nil {
		return
	}
	p.Source, p.Label, p.Malformed = program.Source(b[0]), r.readBool(b[1], "label"), program.Malformed(b[2])
	r.checkZeros(b[3:], "source")
}

func readOutput(p *program.Program, r *reader) {
	b := r.takeBytes(outputSize, "output")
	if r.err != nil {
		return
	}
	p.Output = program.Output{
		Label: r.readBool(b[0], "label"), IDs: program.IDs(b[1]), Fixed: r.readBool(b[2], "fixed"),
		Dense: le.Uint32(b[4:]), Keys: le.Uint32(b[8:]),
	}
	r.checkZeros(b[3:4], "output")
	r.checkZeros(b[12:], "output")
}

// readDense reads the type of dense, which is written only if it is not float32.
func readDense(p *program.Program, r *reader) {
	b := r.takeBytes(denseSize, "dense")
	if r.err != nil {
		return
	}
	p.Output.DenseType = program.DenseType(b[0])
	if p.Output.DenseType == program.DenseFloat32 {
		r.failCorrupt("a section says that dense is float32, which is said by leaving the section out")
	}
	r.checkZeros(b[1:], "dense")
}

func readColumns(p *program.Program, r *reader, tables *tableSet) {
	head := r.takeBytes(8, "columns")
	if r.err != nil {
		return
	}
	r.checkZeros(head[4:], "columns")
	p.Columns = make([]program.Column, r.checkCount(uint64(le.Uint32(head)), program.MaxColumns, columnSize, "columns"))
	for i := range p.Columns {
		decodeColumn(&p.Columns[i], r, tables)
		if r.err != nil {
			return
		}
	}
}

func decodeColumn(c *program.Column, r *reader, tables *tableSet) {
	b := r.takeBytes(columnSize, "column")
	if r.err != nil {
		return
	}
	c.Kind, c.List, c.Field = program.Kind(b[0]), r.readBool(b[1], "list"), le.Uint16(b[2:])
	if b[12]&^columnFlags != 0 {
		r.failCorrupt("column flags are %#x, want at most %#x", b[12], columnFlags)
	}
	c.Absent, c.FitsInt64 = b[12]&columnAbsent != 0, b[12]&columnFitsInt64 != 0
	c.Reading = program.Reading(b[12] / columnReading)
	r.checkZeros(b[13:], "column")
	n := uint64(le.Uint32(b[4:]))
	if n > program.MaxName {
		r.failCorrupt("a name of %d bytes, want at most %d", n, program.MaxName)
		return
	}
	name := r.takePadded(n, "name")
	if !utf8.Valid(name) {
		r.failCorrupt("the name %q is not UTF-8", name)
	}
	c.Name = string(name)
	sinks := r.checkCount(uint64(le.Uint32(b[8:])), program.MaxSinks, sinkSize, "sinks")
	if sinks == 0 {
		return // of a map's keys or scores; Validate refuses others
	}
	c.Sinks = make([]program.Sink, sinks)
	for i := range c.Sinks {
		decodeSink(&c.Sinks[i], r, tables)
		if r.err != nil {
			return
		}
	}
}

func decodeSink(s *program.Sink, r *reader, tables *tableSet) {
	b := r.takeBytes(sinkSize, "sink")
	if r.err != nil {
		return
	}
	s.To, s.Refuses, s.Index = program.Dest(b[0]), program.Refusal(b[1]), le.Uint32(b[4:])
	r.checkZeros(b[2:4], "sink")
	r.checkZeros(b[12:], "sink")
	n := r.checkCount(uint64(le.Uint32(b[8:])), program.MaxOps, opSize, "operators")
	if n == 0 {
		return
	}
	s.Ops = make([]program.Op, n)
	for i := range s.Ops {
		if s.Ops[i] = readOp(r, tables); r.err != nil {
			return
		}
	}
}
