package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unpackKernels writes the kernels that unpack values of any width. They need no table: the places of a vector's
// values follow from the width, and are the same for every vector, since a vector's values together take whole
// bytes.
func unpackKernels() {
	unpackNarrow("unpackNarrow512")
	unpackWide("unpackWide512")
	shuffleNarrow()
	shuffleWide("unpackWide256", "uint32")
	shuffleWide("unpackWidest256", "int64")
}

// packed are the parameters that every kernel here has.
type packed struct {
	dst, src, width, have reg.GPVirtual
	n                     reg.GPVirtual
}

func packedParams() packed {
	get := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	return packed{dst: get("dst"), src: get("src"), n: get("n"), width: get("width"), have: get("have")}
}

// indexed returns a register with i*width + bit in 64- or 32-bit lane i.
func indexed(size int, width reg.GPVirtual) reg.VecVirtual {
	at := ZMM()
	bit := Load(Param("bit"), GP64())
	count := ZMM()
	first := ZMM()
	if size == 4 {
		VPBROADCASTD(width.As32(), at)
		VPBROADCASTD(bit.(reg.GPVirtual).As32(), first)
		VPMOVZXBD(laneNumbers(), count)
		VPMULLD(count, at, at)
		VPADDD(first, at, at)
	} else {
		VPBROADCASTQ(width, at)
		VPBROADCASTQ(bit, first)
		VPMOVZXBQ(laneNumbers(), count)
		VPMULLQ(count, at, at)
		VPADDQ(first, at, at)
	}
	return at
}

var lanes Mem

// laneNumbers is memory with a byte a lane: 0 to 15.
func laneNumbers() Mem {
	if lanes.Base == nil {
		lanes = GLOBL("laneNumbers", RODATA|NOPTR)
		for i := range 16 {
			DATA(i, U8(i))
		}
	}
	return lanes
}

// lowMask returns a register with the width lowest bits of every lane set.
func lowMask(size int, width reg.GPVirtual) reg.VecVirtual {
	bits, mask := GP64(), ZMM()
	MOVQ(I32(-1), bits)
	BZHIQ(width, bits, bits)
	if size == 4 {
		VPBROADCASTD(bits.As32(), mask)
	} else {
		VPBROADCASTQ(bits, mask)
	}
	return mask
}

// loadPacked loads 64 bytes, or as many as there are.
func loadPacked(p packed, k reg.Register, to reg.VecVirtual) {
	if k == nil {
		VMOVDQU8(Mem{Base: p.src}, to)
		return
	}
	VMOVDQU8_Z(Mem{Base: p.src}, k, to)
}

// packedLoop emits the loop twice: first for as long as there are 64 bytes, and then with masks for the bytes and
// the values that are left.
func packedLoop(p packed, lanes int, step func() reg.GPVirtual, body func(bytes, values reg.Register), outSize int) {
	by := step()
	Label("whole")
	CMPQ(p.n, I32(lanes))
	JL(LabelRef("rest"))
	CMPQ(p.have, I32(64))
	JL(LabelRef("rest"))
	body(nil, nil)
	ADDQ(I32(outSize*lanes), p.dst)
	ADDQ(by, p.src)
	SUBQ(by, p.have)
	SUBQ(I32(lanes), p.n)
	JMP(LabelRef("whole"))

	Label("rest")
	CMPQ(p.n, I32(0))
	JLE(LabelRef("done"))
	bytes, most := GP64(), GP64()
	MOVQ(I32(64), most)
	MOVQ(p.have, bytes)
	CMPQ(bytes, most)
	CMOVQGT(most, bytes)
	XORQ(most, most)
	CMPQ(bytes, most)
	CMOVQLT(most, bytes)
	// A one for each byte that is there. BZHI with 64 keeps all ones.
	k := firstLanes(bytes)
	values := GP64()
	MOVQ(I32(lanes), most)
	MOVQ(p.n, values)
	CMPQ(values, most)
	CMOVQGT(most, values)
	body(k, firstLanes(values))
	ADDQ(I32(outSize*lanes), p.dst)
	ADDQ(by, p.src)
	SUBQ(by, p.have)
	SUBQ(I32(lanes), p.n)
	JMP(LabelRef("rest"))
	Label("done")
	VZEROUPPER()
	RET()
}

// unpackNarrow is for widths of at most 17 bits: sixteen values lie in at most 36 bytes, and each in two words of 16 bits.
func unpackNarrow(name string) {
	TEXT(name, NOSPLIT, "func(dst *uint32, src *byte, n, bit, width, have int)")
	describe(name + " unpacks n values of 1 to 17 bits, from bit number bit (0 to 7) of the have bytes at src on. " +
		"Bytes behind these count as 0.")
	Pragma("noescape")
	p := packedParams()
	at := indexed(4, p.width)
	shift, words := ZMM(), ZMM()
	VPANDD(dwords(15), at, shift)
	VPSRLD(Imm(4), at, words)
	next := ZMM()
	VPSLLD(Imm(16), words, next)
	VPORD(next, words, words)
	VPADDD(dwords(0x10000), words, words)
	mask := lowMask(4, p.width)
	packedLoop(p, 16, func() reg.GPVirtual {
		by := GP64()
		LEAQ(Mem{Base: p.width, Index: p.width, Scale: 1}, by)
		return by
	}, func(bytes, values reg.Register) {
		x := ZMM()
		loadPacked(p, bytes, x)
		VPERMW(x, words, x)
		VPSRLVD(shift, x, x)
		if values == nil {
			VPANDD(mask, x, x)
		} else {
			VPANDD_Z(mask, x, values, x)
		}
		store32(x, values, Mem{Base: p.dst})
	}, 4)
}

// dwords returns a register with x in every 32-bit lane.
func dwords(x uint32) reg.VecVirtual { return z512.all32(x) }

// unpackWide is for widths of at most 32 bits: eight values lie in at most 33 bytes, and each in three words of 16 bits, of which
// four are taken.
func unpackWide(name string) {
	TEXT(name, NOSPLIT, "func(dst *uint32, src *byte, n, bit, width, have int)")
	describe(name + " unpacks n values of 1 to 32 bits, from bit number bit (0 to 7) of the have bytes at src on. " +
		"Bytes behind these count as 0.")
	Pragma("noescape")
	p := packedParams()
	at := indexed(8, p.width)
	shift, words := ZMM(), ZMM()
	VPANDQ(z512.all(15), at, shift)
	VPSRLQ(Imm(4), at, words)
	VPMULLQ(z512.all(0x0001_0001_0001_0001), words, words)
	VPADDW(z512.all(0x0003_0002_0001_0000), words, words)
	mask := lowMask(8, p.width)
	packedLoop(p, 8, func() reg.GPVirtual { return p.width }, func(bytes, values reg.Register) {
		x := ZMM()
		loadPacked(p, bytes, x)
		VPERMW(x, words, x)
		VPSRLVQ(shift, x, x)
		VPANDQ(mask, x, x)
		if values == nil {
			VPMOVQD(x, Mem{Base: p.dst})
		} else {
			VPMOVQD(x, values, Mem{Base: p.dst})
		}
	}, 4)
}

// shuffler unpacks a vector of values with AVX2: each half of a register gets the 16 bytes in which its values begin, and a
// shuffle puts the bytes of each value, from the one that it begins in, into its lane.
type shuffler struct {
	from           [2]reg.GPVirtual // bytes from src to those of a half
	control, shift reg.VecVirtual
}

// newShuffler is for the lanes of size bytes, of which the first holds value number first.
func newShuffler(size, first int, width, bit reg.GPVirtual) shuffler {
	var s shuffler
	lanes := 32 / size
	numbers, at, by := YMM(), YMM(), YMM()
	x := XMM()
	VMOVD(width.As32(), x)
	VPBROADCASTD(x, by)
	m := laneNumbers()
	m.Disp = first
	if size == 4 {
		VPMOVZXBD(m, numbers)
		VPMULLD(by, numbers, at)
	} else {
		VPMOVZXBQ(m, numbers)
		VPMULUDQ(by, numbers, at)
	}
	y, start := XMM(), YMM()
	if size == 4 {
		VMOVD(bit.As32(), y)
		VPBROADCASTD(y, start)
		VPADDD(start, at, at)
	} else {
		VMOVQ(bit, y)
		VPBROADCASTQ(y, start)
		VPADDQ(start, at, at)
	}
	s.shift, s.control = YMM(), YMM()
	VPAND(words256(map[int]uint64{4: 7<<32 | 7, 8: 7}[size]), at, s.shift)
	if size == 4 {
		VPSRLD(Imm(3), at, at)
	} else {
		VPSRLQ(Imm(3), at, at)
	}
	for half := range s.from {
		r := GP64()
		IMUL3Q(I32(first+half*lanes/2), width, r)
		ADDQ(bit, r)
		SHRQ(Imm(3), r)
		s.from[half] = r
	}
	// The byte that a value begins in, counted from its half's first, in every byte of its lane; then one more for each byte.
	base, high := XMM(), XMM()
	VMOVD(s.from[0].As32(), base)
	VMOVD(s.from[1].As32(), high)
	bases := YMM()
	VPBROADCASTD(base, base)
	VPBROADCASTD(high, high)
	VINSERTI128(Imm(1), high, base.AsY(), bases)
	VPSUBB(bases, at, at)
	spread, ramp := uint64(0), uint64(0)
	for i := range 8 {
		spread |= uint64(i&^(size-1)) << (8 * i)
		ramp |= uint64(i&(size-1)) << (8 * i)
	}
	VPSHUFB(pair256(spread, spread+0x0808080808080808), at, s.control)
	VPADDB(words256(ramp), s.control, s.control)
	return s
}

// load returns a register with the values in its lanes, and other bits above them.
func (s shuffler) load(size int, src reg.GPVirtual) reg.VecVirtual {
	x := YMM()
	VMOVDQU(Mem{Base: src, Index: s.from[0], Scale: 1}, x.AsX())
	VINSERTI128(Imm(1), Mem{Base: src, Index: s.from[1], Scale: 1}, x, x)
	VPSHUFB(s.control, x, x)
	if size == 4 {
		VPSRLVD(s.shift, x, x)
	} else {
		VPSRLVQ(s.shift, x, x)
	}
	return x
}

// pair256 returns memory with two 64-bit words in either half of a register.
func pair256(low, high uint64) Mem {
	m, ok := pairs[low]
	if !ok {
		m = GLOBL("pair"+hex(low), RODATA|NOPTR)
		for i := range 4 {
			DATA(8*i, U64([]uint64{low, high}[i%2]))
		}
		pairs[low] = m
	}
	return m
}

var pairs = map[uint64]Mem{}

// shuffled emits the loop over eight values at a time, as long as there are bytes for the last load of 16 bytes.
func shuffled(name, to, bits string, make func(width, bit reg.GPVirtual) []shuffler, body func(p packed, s []shuffler)) {
	TEXT(name, NOSPLIT, "func(dst *"+to+", src *byte, n, bit, width, have int) (done int)")
	describe(name + " unpacks the first n/8*8 of n values of 1 to " + bits + " bits, from bit number bit (0 to 7) of " +
		"the have bytes at src on. It ends early if too few bytes lie behind them. It returns the number of values that " +
		"it unpacked.")
	Pragma("noescape")
	p := packedParams()
	s := make(p.width, Load(Param("bit"), GP64()).(reg.GPVirtual))
	need, total := GP64(), GP64()
	LEAQ(Mem{Base: s[len(s)-1].from[1], Disp: 16}, need)
	MOVQ(p.n, total)
	Label("loop")
	CMPQ(p.n, I32(8))
	JL(LabelRef("end"))
	CMPQ(p.have, need)
	JL(LabelRef("end"))
	body(p, s)
	ADDQ(p.width, p.src)
	SUBQ(p.width, p.have)
	SUBQ(I32(8), p.n)
	JMP(LabelRef("loop"))
	Label("end")
	SUBQ(p.n, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

func shuffleNarrow() {
	var mask reg.VecVirtual
	shuffled("unpackNarrow256", "uint32", "25", func(width, bit reg.GPVirtual) []shuffler {
		mask = lowMask256(4, width)
		return []shuffler{newShuffler(4, 0, width, bit)}
	}, func(p packed, s []shuffler) {
		x := s[0].load(4, p.src)
		VPAND(mask, x, x)
		VMOVDQU(x, Mem{Base: p.dst})
		ADDQ(I32(32), p.dst)
	})
}

func shuffleWide(name, to string) {
	bits := map[string]string{"uint32": "32", "int64": "57"}[to]
	var mask reg.VecVirtual
	shuffled(name, to, bits, func(width, bit reg.GPVirtual) []shuffler {
		mask = lowMask256(8, width)
		return []shuffler{newShuffler(8, 0, width, bit), newShuffler(8, 4, width, bit)}
	}, func(p packed, s []shuffler) {
		x := vectors{s[0].load(8, p.src), s[1].load(8, p.src)}
		x.each(func(_ int, x reg.VecVirtual) { VPAND(mask, x, x) })
		if to == "int64" {
			x.each(func(i int, x reg.VecVirtual) { VMOVDQU(x, Mem{Base: p.dst, Disp: 32 * i}) })
			ADDQ(I32(64), p.dst)
			return
		}
		VSHUFPS(Imm(0x88), x[1], x[0], x[0])
		VPERMQ(Imm(0xd8), x[0], x[0])
		VMOVDQU(x[0], Mem{Base: p.dst})
		ADDQ(I32(32), p.dst)
	})
}

// lowMask256 is lowMask for AVX2.
func lowMask256(size int, width reg.GPVirtual) reg.VecVirtual {
	bits, x, mask := GP64(), XMM(), YMM()
	MOVQ(I32(-1), bits)
	BZHIQ(width, bits, bits)
	VMOVQ(bits, x)
	if size == 4 {
		VPBROADCASTD(x, mask)
	} else {
		VPBROADCASTQ(x, mask)
	}
	return mask
}
