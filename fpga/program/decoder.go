package program

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Unmarshal decodes a program and validates it. b must be the whole program and nothing else; the program keeps no part
// of b. Equal Bucketize operators of b are one operator in the program, and operators that share a table share its
// memory.
func Unmarshal(b []byte) (*Program, error) {
	r, sections, err := readProgramHeader(b)
	if err != nil {
		return nil, err
	}
	p := new(Program)
	var tables tableSet
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
			p.readSource(&s)
		case sectionTables:
			tables = readTables(&s)
		case sectionColumns:
			p.readColumns(&s, &tables)
		case sectionOutput:
			p.readOutput(&s)
		case sectionMaps:
			p.readMaps(&s)
		case sectionDense:
			p.readDense(&s)
		case sectionGraphs:
			p.readGraphs(&s, &tables)
		case sectionTexts:
			p.readTexts(&s)
			texts = true
		case sectionLookups:
			p.readLookupTables(&s)
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
	if err := p.checkTexts(texts); err != nil {
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
	if len(b) > MaxSize {
		return nil, 0, corruptError(r.what, "%d bytes, want at most %d", len(b), MaxSize)
	}
	if want, got := le.Uint32(head[crcOffset:]), checksum(b); want != got {
		return nil, 0, corruptError(r.what, "checksum %08x, want %08x", got, want)
	}
	r.checkZeros(head[crcOffset+4:], "header")
	return r, le.Uint32(head[12:]), r.err
}

func (p *Program) readSource(r *reader) {
	b := r.takeBytes(sourceSize, "source")
	if r.err != nil {
		return
	}
	p.Source, p.Label, p.Malformed = Source(b[0]), r.readBool(b[1], "label"), Malformed(b[2])
	r.checkZeros(b[3:], "source")
}

func (p *Program) readOutput(r *reader) {
	b := r.takeBytes(outputSize, "output")
	if r.err != nil {
		return
	}
	p.Output = Output{
		Label: r.readBool(b[0], "label"), IDs: IDs(b[1]), Fixed: r.readBool(b[2], "fixed"),
		Dense: le.Uint32(b[4:]), Keys: le.Uint32(b[8:]),
	}
	r.checkZeros(b[3:4], "output")
	r.checkZeros(b[12:], "output")
}

// readDense reads the type of dense, which is written only if it is not float32.
func (p *Program) readDense(r *reader) {
	b := r.takeBytes(denseSize, "dense")
	if r.err != nil {
		return
	}
	p.Output.DenseType = DenseType(b[0])
	if p.Output.DenseType == DenseFloat32 {
		r.failCorrupt("a section says that dense is float32, which is said by leaving the section out")
	}
	r.checkZeros(b[1:], "dense")
}

func (p *Program) readColumns(r *reader, tables *tableSet) {
	head := r.takeBytes(8, "columns")
	if r.err != nil {
		return
	}
	r.checkZeros(head[4:], "columns")
	p.Columns = make([]Column, r.checkCount(uint64(le.Uint32(head)), MaxColumns, columnSize, "columns"))
	for i := range p.Columns {
		p.Columns[i].decodeFrom(r, tables)
		if r.err != nil {
			return
		}
	}
}

func (c *Column) decodeFrom(r *reader, tables *tableSet) {
	b := r.takeBytes(columnSize, "column")
	if r.err != nil {
		return
	}
	c.Kind, c.List, c.Field = Kind(b[0]), r.readBool(b[1], "list"), le.Uint16(b[2:])
	if b[12]&^columnFlags != 0 {
		r.failCorrupt("column flags are %#x, want at most %#x", b[12], columnFlags)
	}
	c.Absent, c.FitsInt64 = b[12]&columnAbsent != 0, b[12]&columnFitsInt64 != 0
	c.Reading = Reading(b[12] / columnReading)
	r.checkZeros(b[13:], "column")
	n := uint64(le.Uint32(b[4:]))
	if n > MaxName {
		r.failCorrupt("a name of %d bytes, want at most %d", n, MaxName)
		return
	}
	name := r.takePadded(n, "name")
	if !utf8.Valid(name) {
		r.failCorrupt("the name %q is no UTF-8", name)
	}
	c.Name = string(name)
	sinks := r.checkCount(uint64(le.Uint32(b[8:])), MaxSinks, sinkSize, "sinks")
	if sinks == 0 {
		return // of a map's keys or scores; Validate refuses others
	}
	c.Sinks = make([]Sink, sinks)
	for i := range c.Sinks {
		c.Sinks[i].decodeFrom(r, tables)
		if r.err != nil {
			return
		}
	}
}

func (s *Sink) decodeFrom(r *reader, tables *tableSet) {
	b := r.takeBytes(sinkSize, "sink")
	if r.err != nil {
		return
	}
	s.To, s.Refuses, s.Index = Dest(b[0]), Refusal(b[1]), le.Uint32(b[4:])
	r.checkZeros(b[2:4], "sink")
	r.checkZeros(b[12:], "sink")
	n := r.checkCount(uint64(le.Uint32(b[8:])), MaxOps, opSize, "operators")
	if n == 0 {
		return
	}
	s.Ops = make([]Op, n)
	for i := range s.Ops {
		if s.Ops[i] = readOp(r, tables); r.err != nil {
			return
		}
	}
}

// paramSize is the length of each operator's parameters, which is fixed for a version.
var paramSize = map[Unit]uint32{
	UnitFillNull: 16, UnitClamp: 32, UnitLog: 4, UnitBucketize: bucketizeSize, UnitSigridHash: 16,
	UnitPositiveModulus: 8,
	UnitHexToInt:        0, UnitZeroExtend: 0, UnitFirstX: 8, UnitConvert: 1, UnitLogit: 4, UnitBoxCox: 12,
	UnitNGram: 8, UnitHashBytes: 1, UnitLocalHour: 8, UnitMapID: 16, UnitNormalize: 16, UnitMinMax: 16,
	UnitListSlice: 40, UnitFillNaN: 8,
	UnitRescale: 16, UnitInt96Time: 1, UnitDecimal: 2, UnitFloat16: 0, UnitFixedLength: 12,
	UnitHashBucket: 8, UnitOneHot: 16, UnitVocabulary: lookupSize,
}

// readParameters reads an operator up to its parameters, whose length must be that of its unit in sizes.
func readParameters(r *reader, sizes map[Unit]uint32) (Unit, []byte) {
	head := r.takeBytes(opSize, "operator")
	if r.err != nil {
		return 0, nil
	}
	unit, version, n := Unit(le.Uint16(head)), le.Uint16(head[2:]), le.Uint32(head[4:])
	want, known := sizes[unit]
	if !known || version != unit.Version() {
		r.err = &UnknownError{Unit: unit, Version: version}
		return 0, nil
	}
	if n != want {
		r.failCorrupt("%v has %d bytes of parameters, want %d", unit, n, want)
		return 0, nil
	}
	return unit, r.takePadded(uint64(n), "parameters")
}

func readOp(r *reader, tables *tableSet) Op {
	unit, b := readParameters(r, paramSize)
	if r.err != nil {
		return nil
	}
	switch unit {
	case UnitFillNull:
		return FillNull{Int: int64(le.Uint64(b)), Float: float64At(b[8:])}
	case UnitClamp:
		return Clamp{
			IntLo: int64(le.Uint64(b)), IntHi: int64(le.Uint64(b[8:])),
			FloatLo: float64At(b[16:]), FloatHi: float64At(b[24:]),
		}
	case UnitLog:
		return Log{Add: float32At(b)}
	case UnitBucketize:
		return tables.readBucketize(r, b)
	case UnitLocalHour:
		return tables.readLocalHour(r, b)
	case UnitMapID:
		return tables.readMapID(r, b)
	case UnitSigridHash:
		return SigridHash{Salt: int64(le.Uint64(b)), Max: int64(le.Uint64(b[8:]))}
	case UnitPositiveModulus:
		return PositiveModulus{M: int64(le.Uint64(b))}
	case UnitOneHot:
		r.checkZeros(b[5:8], "onehot")
		return OneHot{Classes: le.Uint32(b), Ranges: r.readBool(b[4], "ranges"), Lower: float32At(b[8:]),
			Upper: float32At(b[12:])}
	case UnitVocabulary:
		return readLookup(r, b)
	case UnitHashBucket:
		return HashBucket{Buckets: int64(le.Uint64(b))}
	case UnitHexToInt:
		return HexToInt{}
	case UnitZeroExtend:
		return ZeroExtend{}
	case UnitFirstX:
		return FirstX{N: int64(le.Uint64(b))}
	case UnitNGram:
		r.checkZeros(b[5:], "ngram")
		return NGram{N: int64(le.Uint32(b)), Mode: NGramMode(b[4])}
	case UnitHashBytes:
		return HashBytes{Function: HashFunction(b[0])}
	case UnitRescale:
		return Rescale{Multiplier: int64(le.Uint64(b)), Divisor: int64(le.Uint64(b[8:]))}
	case UnitInt96Time:
		return Int96Time{To: TimeUnit(b[0])}
	case UnitDecimal:
		return Decimal{Scale: b[0], To: Kind(b[1])}
	case UnitFloat16:
		return Float16{}
	case UnitFixedLength:
		r.checkZeros(b[5:8], "fixed_length")
		return FixedLength{Length: le.Uint32(b), Pads: r.readBool(b[4], "pads"), Pad: float32At(b[8:])}
	case UnitLogit:
		return Logit{Eps: float32At(b)}
	case UnitListSlice:
		r.checkZeros(b[33:], "list_slice")
		return ListSlice{Start: int64(le.Uint64(b)), End: int64(le.Uint64(b[8:])), PadInt: int64(le.Uint64(b[16:])),
			PadFloat: float64At(b[24:]), Padded: r.readBool(b[32], "padded")}
	case UnitFillNaN:
		return FillNaN{Value: float64At(b)}
	case UnitNormalize:
		return Normalize{Mean: float64At(b), Deviation: float64At(b[8:])}
	case UnitMinMax:
		return MinMax{Min: float64At(b), Max: float64At(b[8:])}
	case UnitBoxCox:
		r.checkZeros(b[9:12], "box_cox")
		return BoxCox{Lambda1: float32At(b), Lambda2: float32At(b[4:]), Mode: BoxCoxMode(b[8])}
	default:
		return Convert{To: Kind(b[0])}
	}
}
