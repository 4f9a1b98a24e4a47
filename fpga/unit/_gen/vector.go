package main

import (
	"math"
	"strconv"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector holds what kernels of one width share.
type vector struct {
	bits  int // of a register: 256 or 512
	bytes int
}

var (
	y256 = vector{256, 32}
	z512 = vector{512, 64}
)

// reg returns a fresh register of the width.
func (v vector) reg() reg.VecVirtual {
	if v.bits == 512 {
		return ZMM()
	}
	return YMM()
}

// half returns the lower half of a register.
func (v vector) half(r reg.VecVirtual) reg.Register {
	if v.bits == 512 {
		return r.AsY()
	}
	return r.AsX()
}

// lanes64 is how many 64-bit lanes a register has.
func (v vector) lanes64() int { return v.bits / 64 }

// describe sets the comment of the function that is being built, in lines of at most 120 columns.
func describe(text string) { Doc(wrap(text)...) }

// wrap breaks a comment's text into lines.
func wrap(text string) []string {
	const width = 117 // without "// "
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

var constants = map[uint64]Mem{}

// word returns a 64-bit constant in memory.
func word(x uint64) Mem {
	m, ok := constants[x]
	if !ok {
		m = ConstData("word"+hex(x), U64(x))
		constants[x] = m
	}
	return m
}

// float is word for a float64.
func float(x float64) Mem { return word(math.Float64bits(x)) }

// repeated returns a register's worth of memory with x in every 64-bit word, for instructions that take memory.
func repeated(v vector, x uint64) Mem {
	m, ok := repeats[x]
	if !ok {
		m = GLOBL("words"+hex(x), RODATA|NOPTR)
		for i := range v.lanes64() {
			DATA(8*i, U64(x))
		}
		repeats[x] = m
	}
	return m
}

// shared returns memory of the given name, which the first call fills.
func shared(name string, fill func()) Mem {
	m, ok := sharedData[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		fill()
		sharedData[name] = m
	}
	return m
}

var sharedData = map[string]Mem{}

var repeats = map[uint64]Mem{}

func hex(x uint64) string {
	const digits = "0123456789abcdef"
	s := make([]byte, 16)
	for i := range s {
		s[15-i] = digits[x>>(4*i)&15]
	}
	return string(s)
}

// all returns a register with x in every 64-bit lane.
func (v vector) all(x uint64) reg.VecVirtual {
	r := v.reg()
	VPBROADCASTQ(word(x), r)
	return r
}

// allFloat is all for a float64.
func (v vector) allFloat(x float64) reg.VecVirtual { return v.all(math.Float64bits(x)) }

// all32 returns a register with x in every 32-bit lane.
func (v vector) all32(x uint32) reg.VecVirtual {
	r := v.reg()
	VPBROADCASTD(word(uint64(x)), r)
	return r
}

// param64 returns a register with a 64-bit parameter in every lane.
func (v vector) param64(name string) reg.VecVirtual {
	m, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.reg()
	VPBROADCASTQ(m.Addr, r)
	return r
}

// param32 returns a register with a 32-bit parameter in every lane. Vet takes the D of a broadcast from memory for 8 bytes.
func (v vector) param32(name string) reg.VecVirtual {
	r, from := v.reg(), Load(Param(name), GP32())
	if v.bits == 256 { // AVX2 broadcasts no general register
		x := XMM()
		VMOVD(from, x)
		from = x
	}
	VPBROADCASTD(from, r)
	return r
}

// paramFloat32 is param32 for a float32, which vet wants broadcast as such.
func (v vector) paramFloat32(name string) reg.VecVirtual {
	m, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.reg()
	VBROADCASTSS(m.Addr, r)
	return r
}

// firstLanes returns a mask of the first n lanes, n below 64.
func firstLanes(n reg.Register) reg.OpmaskVirtual {
	bits := GP64()
	MOVQ(I32(-1), bits)
	BZHIQ(n, bits, bits)
	k := K()
	KMOVQ(bits, k)
	return k
}

// loop describes a kernel's loop over n elements.
type loop struct {
	n       reg.GPVirtual // elements left; the loop counts it down
	lanes   int           // elements in a vector
	unroll  int           // vectors at a time, or 0 for one
	masked  bool          // the rest at the end is done under a mask; else the caller does it
	body    func(vectors int, k reg.Register)
	advance func(elements int)
	end     func() // emits the function's work before it returns, if any; a body may jump to it, to "end"
}

// emit writes the loops and returns from the function. body is emitted for unroll vectors, for one, and for one under a mask.
func (l loop) emit() {
	steps := []int{1}
	if l.unroll > 1 {
		steps = []int{l.unroll, 1}
	}
	for i, vectors := range steps {
		loop, next := "loop"+strconv.Itoa(vectors), "behind"+strconv.Itoa(vectors)
		elements := vectors * l.lanes
		Label(loop)
		CMPQ(l.n, I32(elements))
		JL(LabelRef(next))
		l.body(vectors, nil)
		l.advance(elements)
		SUBQ(I32(elements), l.n)
		JMP(LabelRef(loop))
		Label(next)
		if i == len(steps)-1 && l.masked {
			TESTQ(l.n, l.n)
			JZ(LabelRef("done"))
			l.body(1, firstLanes(l.n))
			if l.end != nil {
				XORQ(l.n, l.n)
			}
			Label("done")
		}
	}
	if l.end != nil {
		Label("end")
		l.end()
	}
	VZEROUPPER()
	RET()
}

// vectors are registers whose work is interleaved: the processor sees the independent instructions near each other.
type vectors []reg.VecVirtual

// regs returns count fresh registers.
func (v vector) regs(count int) vectors {
	xs := make(vectors, count)
	for i := range xs {
		xs[i] = v.reg()
	}
	return xs
}

// each emits an instruction, or several, for every vector.
func (xs vectors) each(f func(i int, x reg.VecVirtual)) {
	for i, x := range xs {
		f(i, x)
	}
}

// xor is x ^= y.
func (v vector) xor(y, x reg.VecVirtual) {
	if v.bits == 512 {
		VPXORQ(y, x, x)
	} else {
		VPXOR(y, x, x)
	}
}

// load32 loads 32-bit lanes. If there is a mask k, lanes outside it become 0.
func load32(m Mem, k reg.Register, to reg.Register) {
	switch {
	case k != nil:
		VMOVDQU32_Z(m, k, to)
	case to.Size() == 64:
		VMOVDQU32(m, to)
	default:
		VMOVDQU(m, to)
	}
}

// store32 stores 32-bit lanes. If there is a mask k, it stores only the lanes of k.
func store32(from, k reg.Register, m Mem) {
	switch {
	case k != nil:
		VMOVDQU32(from, k, m)
	case from.Size() == 64:
		VMOVDQU32(from, m)
	default:
		VMOVDQU(from, m)
	}
}

// load64 loads 64-bit lanes. If there is a mask k, lanes outside it become 0.
func load64(m Mem, k reg.Register, to reg.Register) {
	switch {
	case k != nil:
		VMOVDQU64_Z(m, k, to)
	case to.Size() == 64:
		VMOVDQU64(m, to)
	default:
		VMOVDQU(m, to)
	}
}

// store64 stores 64-bit lanes. If there is a mask k, it stores only the lanes of k.
func store64(from, k reg.Register, m Mem) {
	switch {
	case k != nil:
		VMOVDQU64(from, k, m)
	case from.Size() == 64:
		VMOVDQU64(from, m)
	default:
		VMOVDQU(from, m)
	}
}

// readAhead is the distance, in bytes, at which kernels prefetch the bytes that they will read from memory. The
// processor's own prefetchers stop at the end of a page of 4 KiB and begin again in the next page. At a distance of
// two pages, addresses are translated in time too.
const readAhead = 8192

// readsAhead prefetches the bytes that lie readAhead behind p, in whole vectors. Bytes that do not exist do no harm:
// a prefetch does not fault at any address.
func readsAhead(p reg.Register, vectors int) {
	for i := range vectors {
		PREFETCHT0(Mem{Base: p, Disp: 64*i + readAhead})
	}
}

// storeLow32 stores the low halves of 64-bit lanes, one behind the other. If there is a mask k, it stores only the
// lanes of k.
func storeLow32(from, k reg.Register, m Mem) {
	x := from.(reg.VecVirtual)
	if x.Size() == 64 {
		low := YMM()
		VPMOVQD(x, low)
		if k == nil {
			VMOVDQU32(low, m) // there is no VMOVDQU of the upper sixteen registers
		} else {
			store32(low, k, m)
		}
		return
	}
	high, low := XMM(), XMM()
	VEXTRACTI128(Imm(1), x, high)
	VSHUFPS(Imm(0x88), high, x.AsX(), low)
	VMOVUPS(low, m)
}

// element describes how a type lies in memory.
type element struct {
	size  int
	load  func(m Mem, k reg.Register, to reg.Register)
	store func(from, k reg.Register, m Mem)
}

func elements(kind string) element {
	switch kind {
	case "float32", "int32", "uint32":
		return element{4, load32, store32}
	}
	return element{8, load64, store64}
}

// docOf documents a kernel that works in place on n values or, if it has no masks, on the values of whole vectors.
func docOf(name, does string, w vector, kind string) {
	if w.bits == 512 {
		describe(name + " " + does + " n values with AVX-512.")
		return
	}
	lanes := strconv.Itoa(w.bytes / elements(kind).size)
	describe(name + " " + does + " the first n/" + lanes + "*" + lanes + " of n values with AVX2.")
}
