package format

// Module is a module that was read.
type Module struct {
	source    []byte
	types     []functionType
	functions []function
	globals   []global
	pages     uint32 // The memory has them.
	memory    bool
	segments  []segment
	exports   map[string]uint32 // functions by name
	names     []string          // They are the exported functions, in the module's order.
}

// functionType is a type of functions. It holds the types of values.
type functionType struct{ params, results []byte }

// function is a function whose body is not read yet.
type function struct {
	typ uint32
	at  int // byte of the module where the body begins
	end int
}

// global is a variable of the module.
type global struct {
	typ     byte
	mutable bool
	init    []byte // the expression, its end included
}

// segment is bytes that lie in the memory from the start.
type segment struct {
	offset uint32
	bytes  []byte
}

// Sections of modules.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// sectionOrder is the order of the sections in a module.
var sectionOrder = [...]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionGlobal: 6,
	sectionExport: 7, sectionStart: 8, sectionElement: 9, sectionDataCount: 10, sectionCode: 11, sectionData: 12,
}

// header begins every module: magic and version.
const header = "\x00asm\x01\x00\x00\x00"

// Parse reads a module. Of the bodies of functions it reads how many locals they have: Rewrite reads the code of those
// that an operator reaches.
func Parse(b []byte) (*Module, error) {
	if len(b) > MaxModule {
		return nil, moduleError("%d bytes, want at most %d", len(b), MaxModule)
	}
	if len(b) < len(header) || string(b[:len(header)]) != header {
		return nil, &ModuleError{Detail: "no WebAssembly module of version 1 begins here"}
	}
	r := &reader{b: b, at: len(header), end: len(b)}
	m := &Module{source: b, exports: map[string]uint32{}}
	before, bodies := 0, 0
	for r.more() {
		id := r.byte()
		start := r.at
		s := r.part(r.u32())
		if id == sectionCustom || r.err != nil {
			continue
		}
		if int(id) >= len(sectionOrder) || sectionOrder[id] <= before {
			r.at = start
			r.fail("section %d is unknown, or comes out of order", id)
			break
		}
		before = sectionOrder[id]
		if id == sectionCode {
			bodies = m.readBodies(s)
		} else {
			m.readSection(s, id)
		}
		s.finish(r, "section")
	}
	if r.err == nil && bodies != len(m.functions) {
		r.fail("%d functions and %d bodies", len(m.functions), bodies)
	}
	if r.err == nil {
		r.err = m.check()
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// readSection reads a section other than that of the bodies.
func (m *Module) readSection(r *reader, id byte) {
	switch id {
	case sectionType:
		for range r.count(MaxTypes, "types") {
			m.readType(r)
		}
	case sectionImport:
		if r.count(MaxExports, "imports") > 0 {
			r.fail("the module imports something, and an operator calls nothing outside its module")
		}
	case sectionFunction:
		for range r.count(MaxFunctions, "functions") {
			m.functions = append(m.functions, function{typ: r.u32()})
		}
	case sectionMemory:
		if n := r.count(MaxExports, "memories"); n > 1 {
			r.fail("%d memories, want one", n)
		} else if n == 1 {
			m.readMemory(r)
		}
	case sectionGlobal:
		for range r.count(MaxGlobals, "globals") {
			m.readGlobal(r)
		}
	case sectionExport:
		for range r.count(MaxExports, "exports") {
			m.readExport(r)
		}
	case sectionStart:
		r.fail("the module has a start function, and an operator's module is made without running it")
	case sectionData:
		for range r.count(MaxSegments, "segments of data") {
			m.readSegment(r)
		}
	default: // tables, elements and the number of segments: nothing that an operator reaches uses them
		r.at = r.end
	}
}

func (m *Module) readType(r *reader) {
	if form := r.byte(); r.err == nil && form != 0x60 {
		r.fail("a type of form %#x, want a function's", form)
	}
	t := functionType{params: readValueTypes(r)}
	t.results = readValueTypes(r)
	m.types = append(m.types, t)
}

func readValueTypes(r *reader) []byte {
	types := r.take(uint32(r.count(1<<10, "values")))
	for _, t := range types {
		checkValueType(r, t)
	}
	return types
}

// checkValueType fails unless a type is that of a number.
func checkValueType(r *reader, t byte) {
	if r.err == nil && (t < typeF64 || t > typeI32) {
		r.fail("a value of type %#x, want i32, i64, f32 or f64", t)
	}
}

func (m *Module) readMemory(r *reader) {
	flags := r.byte()
	if r.err == nil && flags > 1 {
		r.fail("a memory of flags %#x: it is shared between threads, or has addresses of 64 bits", flags)
	}
	m.memory, m.pages = true, r.u32()
	if flags == 1 {
		r.u32() // the most pages: the memory does not grow
	}
	if m.pages > MaxPages {
		r.fail("a memory of %d pages, want at most %d", m.pages, MaxPages)
	}
}

func (m *Module) readGlobal(r *reader) {
	g := global{typ: r.byte()}
	checkValueType(r, g.typ)
	mutable := r.byte()
	if mutable > 1 {
		r.fail("a global of mutability %d", mutable)
	}
	g.mutable = mutable == 1
	start := r.at
	readConstant(r)
	if r.err == nil {
		g.init = r.b[start:r.at]
	}
	m.globals = append(m.globals, g)
}

// readConstant reads a constant and the end behind it, and returns an i32's value.
func readConstant(r *reader) (value int64) {
	switch op := r.byte(); op {
	case opI32Const:
		value = r.signed(5)
	case opI64Const:
		r.signed(10)
	case opF32Const:
		r.take(4)
	case opF64Const:
		r.take(8)
	default:
		r.fail("a first value by instruction %#x, want a constant", op)
	}
	if end := r.byte(); end != opEnd {
		r.fail("a first value of several instructions, want a constant")
	}
	return value
}

func (m *Module) readExport(r *reader) {
	name := string(r.take(r.u32()))
	kind, index := r.byte(), r.u32()
	if kind != 0 || r.err != nil {
		return
	}
	if _, twice := m.exports[name]; twice {
		r.fail("two exports of one name")
		return
	}
	m.exports[name] = index
	m.names = append(m.names, name)
}

func (m *Module) readSegment(r *reader) {
	if flags := r.u32(); r.err == nil && flags != 0 {
		r.fail("a segment of data of flags %#x, want one that lies in the memory from the start", flags)
	}
	if r.err == nil && r.at < r.end && r.b[r.at] != opI32Const {
		r.fail("a segment of data whose place is not a constant")
	}
	s := segment{offset: uint32(readConstant(r))}
	s.bytes = r.take(r.u32())
	if end := uint64(s.offset) + uint64(len(s.bytes)); r.err == nil && end > uint64(m.pages)*pageBytes {
		r.fail("a segment of data that ends at %d in a memory of %d bytes", end, uint64(m.pages)*pageBytes)
	}
	m.segments = append(m.segments, s)
}

// readBodies notes where the bodies of functions lie, and returns their number. It reads how many locals each has.
func (m *Module) readBodies(r *reader) int {
	n, locals := r.count(MaxFunctions, "bodies"), uint32(0)
	for i := range n {
		body := r.part(r.u32())
		if i < len(m.functions) {
			m.functions[i].at, m.functions[i].end = body.at, body.end
		}
		_, _, more := readLocals(body, 0)
		if locals += more; locals > MaxModuleLocals {
			body.fail("more than %d locals of all functions", MaxModuleLocals)
		}
		if r.err = body.err; r.err != nil {
			break
		}
	}
	return n
}

// readLocals reads the declarations of a function's locals. It returns them, their number, and how many locals the
// function has with its parameters.
func readLocals(r *reader, parameters uint32) (declarations []byte, groups, locals uint32) {
	groups, locals = uint32(r.count(MaxLocals, "groups of locals")), parameters
	start := r.at
	for range groups {
		n := r.u32()
		checkValueType(r, r.byte())
		if n > MaxLocals || locals+n > MaxLocals {
			r.fail("more than %d locals", MaxLocals)
			break
		}
		locals += n
	}
	return r.b[start:r.at], groups, locals
}

// check checks the indices of functions and types.
func (m *Module) check() error {
	for i := range m.functions {
		if t := m.functions[i].typ; uint64(t) >= uint64(len(m.types)) {
			return moduleError("function %d has type %d of %d", i, t, len(m.types))
		}
	}
	for name, index := range m.exports {
		if uint64(index) >= uint64(len(m.functions)) {
			return moduleError("export %.*q is function %d of %d", MaxName, name, index, len(m.functions))
		}
	}
	return nil
}

// Exports returns the names of the functions that can be operators, and their signatures, in the module's order.
func (m *Module) Exports() (names []string, signatures []Signature) {
	for _, name := range m.names {
		t := m.types[m.functions[m.exports[name]].typ]
		var s Signature
		for _, p := range t.params {
			s.In = append(s.In, kindOf(p))
		}
		if len(t.results) == 1 {
			s.Out = kindOf(t.results[0])
		}
		if s.Check() == nil && len(name) <= MaxName {
			names, signatures = append(names, name), append(signatures, s)
		}
	}
	return names, signatures
}

// kindOf returns the kind of a type of values, or 0.
func kindOf(wasm byte) Kind {
	for _, k := range []Kind{Int64, Float32, Float64} {
		if kindTypes[k].wasm == wasm {
			return k
		}
	}
	return 0
}
