package format

import "encoding/binary"

// Exports of a rewritten module.
const (
	ExportRun    = "run"    // takes a number of rows, at most BlockRows, and calls the operator for each row of the block
	ExportCall   = "call"   // the operator itself, for one row of a new instance
	ExportRow    = "row"    // i32: the row that was being computed when a call trapped
	ExportFuel   = "fuel"   // i64: below 0 if a call trapped for want of fuel
	ExportMemory = "memory" // the block's columns, the memory as it was at first, and the module's own memory
)

// Rewritten is a module that computes an operator.
type Rewritten struct {
	Bytes     []byte
	Signature Signature
	// Memory is the size of the module's own memory in bytes, and Base its place. It lies last, so that an address is
	// outside the whole memory if it is outside the module's own. Inputs and Output are the places of the block's columns,
	// BlockRows values each.
	Memory uint32
	Base   uint32
	Inputs []uint32
	Output uint32
	// Pristine is the place of the memory as it was at first, which an instance copies there before its first block; 0 if
	// the operator writes no memory.
	Pristine uint32
	Pages    uint32 // Pages count the whole memory.
	Steps    uint64 // Steps of compiling the module are at most MaxWork.
}

// Held returns the memory that the operator holds for each block that runs at once, at most: an instance, and the
// machine code, which has less than a byte for each step of compiling it.
func (r *Rewritten) Held() uint64 { return r.Steps + uint64(r.Pages)*pageBytes }

// end returns the byte behind the whole memory.
func (r *Rewritten) end() uint32 { return r.Base + r.Memory }

// Rewrite parses a module and rewrites a function of it.
func Rewrite(b []byte, name string, of Signature) (*Rewritten, error) {
	m, err := Parse(b)
	if err != nil {
		return nil, err
	}
	return m.Rewrite(name, of)
}

// Rewrite makes a module that computes the exported function of a name, of the functions that it reaches. It looks at
// no types: the runtime's validation refuses what it makes of code whose types do not fit.
func (m *Module) Rewrite(name string, of Signature) (*Rewritten, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	index, err := m.find(name, of)
	if err != nil {
		return nil, err
	}
	r, err := m.reachFrom(index)
	if err != nil {
		return nil, err
	}
	w := &rewriter{module: m, reach: r, out: m.layOut(of, r), places: map[uint32]uint32{}}
	for place, function := range r.order {
		w.places[function] = uint32(place)
	}
	w.out.Bytes = w.encode()
	return w.out, nil
}

// find returns the index of an exported function, whose type is a signature.
func (m *Module) find(name string, want Signature) (uint32, error) {
	if len(name) == 0 || len(name) > MaxName {
		return 0, moduleError("a function's name of %d bytes, want 1 to %d", len(name), MaxName)
	}
	index, ok := m.exports[name]
	if !ok {
		return 0, moduleError("no function %q is exported; operators of this module: %v", name, m.operators())
	}
	t := m.types[m.functions[index].typ]
	match := len(t.params) == len(want.In) && len(t.results) == 1 && kindOf(t.results[0]) == want.Out
	for i := 0; match && i < len(want.In); i++ {
		match = kindOf(t.params[i]) == want.In[i]
	}
	if !match {
		return 0, moduleError("function %q is not %v; operators of this module: %v", name, want, m.operators())
	}
	return index, nil
}

// operators lists the functions that can be operators, for messages.
func (m *Module) operators() (list []string) {
	names, signatures := m.Exports()
	for i := range names[:min(len(names), 8)] {
		list = append(list, names[i]+signatures[i].String())
	}
	return list
}

// layOut places the block's columns, the memory as it was at first, and the module's own memory behind each other.
func (m *Module) layOut(of Signature, r *reach) *Rewritten {
	out := &Rewritten{Signature: of, Memory: m.pages * pageBytes, Steps: r.steps}
	at := uint32(0)
	for _, k := range of.In {
		out.Inputs = append(out.Inputs, at)
		at += k.Bytes() * BlockRows
	}
	out.Output = at
	at += of.Out.Bytes() * BlockRows
	out.Base = (at + pageBytes - 1) / pageBytes * pageBytes
	if r.writes {
		out.Pristine = out.Base
		out.Base += out.Memory
	}
	out.Pages = (out.Base + out.Memory) / pageBytes
	return out
}

// rewriter writes the module of an operator.
type rewriter struct {
	module *Module
	reach  *reach
	places map[uint32]uint32 // They are those of functions in the new module, which holds what is reached.
	out    *Rewritten
}

// Globals that the rewriting adds, counted from the module's own.
const (
	globalRow = iota
	globalFuel
	globalLow  // the first byte of memory that a row has written
	globalHigh // the byte behind the last
	addedGlobals
)

// encode returns the module's bytes.
func (w *rewriter) encode() []byte {
	b := []byte(header)
	b = appendSection(b, sectionType, w.types())
	b = appendSection(b, sectionFunction, w.functionTypes())
	b = appendSection(b, sectionMemory, appendU32([]byte{1, 1}, w.out.Pages, w.out.Pages))
	b = appendSection(b, sectionGlobal, w.globals())
	b = appendSection(b, sectionExport, w.exports())
	b = appendSection(b, sectionCode, w.bodies())
	return appendSection(b, sectionData, w.data())
}

// types are those of the functions in their order, and that of the function that runs a block.
func (w *rewriter) types() []byte {
	b := appendU32(nil, uint32(len(w.reach.order))+1)
	for _, function := range w.reach.order {
		t := w.module.types[w.module.functions[function].typ]
		b = append(appendU32(append(b, 0x60), uint32(len(t.params))), t.params...)
		b = append(appendU32(b, uint32(len(t.results))), t.results...)
	}
	return append(b, 0x60, 1, typeI32, 0)
}

func (w *rewriter) functionTypes() []byte {
	b := appendU32(nil, uint32(len(w.reach.order))+1)
	for i := range len(w.reach.order) + 1 {
		b = appendU32(b, uint32(i))
	}
	return b
}

func (w *rewriter) globals() []byte {
	globals := w.module.globals
	b := appendU32(nil, uint32(len(globals))+addedGlobals)
	for i, g := range globals { // one that does not change need not be read again after a call
		b = append(append(b, g.typ, boolByte(g.mutable && w.reach.sets[uint32(i)])), g.init...)
	}
	b = append(b, typeI32, 1, opI32Const, 0, opEnd)                              // row
	b = append(appendI64(append(b, typeI64, 1, opI64Const), Fuel), opEnd)        // fuel
	b = append(appendI32(append(b, typeI32, 1, opI32Const), w.out.end()), opEnd) // low
	return append(b, typeI32, 1, opI32Const, 0, opEnd)                           // high
}

// operator returns the place of the operator, which calls the others and comes last.
func (w *rewriter) operator() uint32 { return uint32(len(w.reach.order)) - 1 }

// global returns the index of an added global.
func (w *rewriter) global(added uint32) uint32 { return uint32(len(w.module.globals)) + added }

func (w *rewriter) exports() []byte {
	b := []byte{5}
	add := func(name string, kind byte, index uint32) {
		b = appendU32(append(append(b, byte(len(name))), name...), uint32(kind))
		b = appendU32(b, index)
	}
	add(ExportRun, 0, uint32(len(w.reach.order)))
	add(ExportCall, 0, w.operator())
	add(ExportRow, 3, w.global(globalRow))
	add(ExportFuel, 3, w.global(globalFuel))
	add(ExportMemory, 2, 0)
	return b
}

func (w *rewriter) bodies() []byte {
	b := appendU32(nil, uint32(len(w.reach.order))+1)
	for _, function := range w.reach.order {
		code := w.body(w.reach.bodies[function])
		b = append(appendU32(b, uint32(len(code))), code...)
	}
	run := w.run()
	return append(appendU32(b, uint32(len(run))), run...)
}

func (w *rewriter) data() []byte {
	b := appendU32(nil, uint32(len(w.module.segments)))
	for _, s := range w.module.segments {
		b = append(appendI32(append(b, 0, opI32Const), w.out.Base+s.offset), opEnd)
		b = append(appendU32(b, uint32(len(s.bytes))), s.bytes...)
	}
	return b
}

func appendSection(b []byte, id byte, content []byte) []byte {
	return append(appendU32(append(b, id), uint32(len(content))), content...)
}

// appendU32 appends unsigned LEB128 numbers.
func appendU32(b []byte, numbers ...uint32) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// appendI32 appends the signed LEB128 number of an i32 whose bits are n.
func appendI32(b []byte, n uint32) []byte { return appendI64(b, int64(int32(n))) }

// appendI64 appends a signed LEB128 number.
func appendI64(b []byte, n int64) []byte {
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
