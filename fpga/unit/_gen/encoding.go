package main

import (
	"math/bits"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// encodings writes the kernels that decode Parquet's encodings.
func encodings() {
	unpackKernels()
	for _, w := range []vector{z512, y256} {
		gather("gather64", "uint64", "uint64", w, func(m Mem, r reg.GPVirtual) { MOVQ(m, r) }, func(m Mem, x reg.VecVirtual) { load64(m, nil, x) })
		gather("gather32", "uint32", "uint32", w, func(m Mem, r reg.GPVirtual) { MOVL(m, r.As32()) }, func(m Mem, x reg.VecVirtual) { load32(m, nil, x) })
		gather("gatherSigned", "int32", "int64", w, func(m Mem, r reg.GPVirtual) { MOVLQSX(m, r) }, func(m Mem, x reg.VecVirtual) { VPMOVSXDQ(m, x) })
		gather("gatherUnsigned", "uint32", "int64", w, func(m Mem, r reg.GPVirtual) { MOVL(m, r.As32()) }, func(m Mem, x reg.VecVirtual) { VPMOVZXDQ(m, x) })
	}
	sums()
	sums256()
	spread("spread64x512", "uint64")
	spread("spread32x512", "uint32")
	spread256("spread64x256", "uint64")
	spread256("spread32x256", "uint32")
	join4()
	join8()
	join256("join4x256", "uint32", 4)
	join256("join8x256", "uint64", 8)
}

func sizeName(w vector) string { return "x" + strconv.Itoa(w.bits) }

// gather writes the kernel that looks up values in a dictionary. The processor's gather instructions take as long as
// single loads, so the kernel uses single loads. It checks all indices of a vector before it uses any of them. If
// all values differ, as in most columns of floats, the indices count up, and their values lie next to each other.
func gather(name, from, to string, w vector, load func(m Mem, r reg.GPVirtual), several func(m Mem, x reg.VecVirtual)) {
	lanes := w.bytes / 4
	name += sizeName(w)
	TEXT(name, NOSPLIT, "func(dst *"+to+", dict *"+from+", idx *uint32, n, size int) (done int)")
	each := strconv.Itoa(lanes)
	describe(name + " sets dst[i] to dict[idx[i]] for n indices, " + each + " at a time. It ends when fewer than " + each +
		" are left, or when one of the next " + each + " is not below size. It returns the number of elements that it " +
		"set.")
	Pragma("noescape")
	get := func(name string) reg.GPVirtual { return Load(Param(name), GP64()).(reg.GPVirtual) }
	dst, dict, idx, n, total := get("dst"), get("dict"), get("idx"), get("n"), GP64()
	MOVQ(n, total)
	size := w.reg()
	limit := get("size")
	if w.bits == 512 {
		VPBROADCASTD(limit.As32(), size)
	} else {
		x := XMM()
		VMOVD(limit.As32(), x)
		VPBROADCASTD(x, size)
	}
	read, write := elements(from).size, elements(to).size
	numbers := w.reg()
	VPMOVZXBD(laneNumbers(), numbers)
	Label("loop")
	CMPQ(n, I32(lanes))
	JL(LabelRef("end"))
	x := w.reg()
	load32(Mem{Base: idx}, nil, x)
	if w.bits == 512 {
		beyond := K()
		VPCMPUD(Imm(5), size, x, beyond)
		KTESTW(beyond, beyond)
	} else {
		greater := YMM()
		VPMAXUD(size, x, greater)
		VPCMPEQD(x, greater, greater)
		VPTEST(greater, greater)
	}
	JNZ(LabelRef("end"))
	up := w.reg()
	VPBROADCASTD(x.AsX(), up)
	VPADDD(numbers, up, up)
	if w.bits == 512 {
		same := K()
		VPCMPEQD(x, up, same)
		KORTESTW(same, same)
		JCS(LabelRef("next"))
	} else {
		same := GP32()
		VPCMPEQD(x, up, up)
		VPMOVMSKB(up, same)
		CMPL(same, I32(-1))
		JEQ(LabelRef("next"))
	}
	for i := range lanes {
		r := GP64()
		MOVL(Mem{Base: idx, Disp: 4 * i}, r.As32())
		load(Mem{Base: dict, Index: r, Scale: uint8(read)}, r)
		if write == 8 {
			MOVQ(r, Mem{Base: dst, Disp: 8 * i})
		} else {
			MOVL(r.As32(), Mem{Base: dst, Disp: 4 * i})
		}
	}
	advance := func() {
		ADDQ(I32(4*lanes), idx)
		ADDQ(I32(write*lanes), dst)
		SUBQ(I32(lanes), n)
		JMP(LabelRef("loop"))
	}
	advance()
	Label("next")
	first := GP64()
	MOVL(Mem{Base: idx}, first.As32())
	LEAQ(Mem{Base: dict, Index: first, Scale: uint8(read)}, first)
	for i := range lanes * write / w.bytes {
		values := w.reg()
		several(Mem{Base: first, Disp: i * w.bytes / write * read}, values)
		storeWhole(w, values, Mem{Base: dst, Disp: i * w.bytes})
	}
	advance()
	Label("end")
	SUBQ(n, total)
	Store(total, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// sums writes the kernel that adds up deltas. Within a vector, three shifted additions add to each lane the lanes
// below it. The sum of the vectors before takes one addition for each vector, so that the work on successive vectors
// overlaps.
func sums() {
	TEXT("sums512", NOSPLIT, "func(v *int64, n int, least, last int64)")
	describe("sums512 replaces each of n values by the sum of last, of the values up to it, and of least for each " +
		"of these.")
	Pragma("noescape")
	v, n := Load(Param("v"), GP64()), Load(Param("n"), GP64()).(reg.GPVirtual)
	least, last := z512.param64("least"), z512.param64("last")
	zero, top := ZMM(), z512.all(7)
	VPXORQ(zero, zero, zero)
	loop{n: n, lanes: 8, masked: true,
		body: func(_ int, k reg.Register) {
			x, t := ZMM(), ZMM()
			load64(Mem{Base: v}, k, x)
			VPADDQ(least, x, x)
			for _, lanes := range []uint64{7, 6, 4} {
				VALIGNQ(Imm(lanes), zero, x, t)
				VPADDQ(t, x, x)
			}
			VPERMQ(x, top, t)
			VPADDQ(last, x, x)
			VPADDQ(t, last, last)
			store64(x, k, Mem{Base: v})
		},
		advance: func(elements int) { ADDQ(I32(8*elements), v) }}.emit()
}

// sums256 writes the same for AVX2. A shift inside the halves of a register and the lower half's sum make the sums of
// four values.
func sums256() {
	TEXT("sums256", NOSPLIT, "func(v *int64, n int, least, last int64) (sum int64)")
	describe("sums256 does with AVX2 what sums512 does, to the first n/4*4 of n values. It returns the last of the " +
		"sums, or last if there are none.")
	Pragma("noescape")
	v, n := Load(Param("v"), GP64()), Load(Param("n"), GP64()).(reg.GPVirtual)
	least, last := y256.param64("least"), y256.param64("last")
	upper := YMM()
	VPCMPEQD(upper, upper, upper)
	VPERM2I128(Imm(0x08), upper, upper, upper)
	loop{n: n, lanes: 4, unroll: 4,
		body: func(vectors int, _ reg.Register) {
			xs := y256.regs(vectors)
			xs.each(func(i int, x reg.VecVirtual) {
				t := YMM()
				VPADDQ(Mem{Base: v, Disp: 32 * i}, least, x)
				VPSLLDQ(Imm(8), x, t)
				VPADDQ(t, x, x)
				VPERMQ(Imm(0x50), x, t)
				VPAND(upper, t, t)
				VPADDQ(t, x, x)
			})
			xs.each(func(i int, x reg.VecVirtual) {
				all := YMM()
				VPERMQ(Imm(0xff), x, all)
				VPADDQ(last, x, x)
				VPADDQ(all, last, last)
				VMOVDQU(x, Mem{Base: v, Disp: 32 * i})
			})
		},
		advance: func(elements int) { ADDQ(I32(8*elements), v) },
		end: func() {
			sum, err := ReturnIndex(0).Resolve()
			if err != nil {
				panic(err)
			}
			VMOVQ(last.AsX(), sum.Addr)
		}}.emit()
}

// spread writes the kernel that moves adjacent values to the places whose bytes are 1. The kernel goes from the end
// to the beginning, so that it never reads a place after it has written it.
func spread(name, kind string) {
	e := elements(kind)
	lanes := 64 / e.size
	TEXT(name, NOSPLIT, "func(v *"+kind+", valid *byte, n, there int)")
	describe(name + " moves the first values of v to those of n places for which valid has a one, and puts 0 into " +
		"the other places. valid has there ones. n is a multiple of " + strconv.Itoa(lanes) + ".")
	Pragma("noescape")
	v, valid := Load(Param("v"), GP64()), Load(Param("valid"), GP64())
	n, there := Load(Param("n"), GP64()).(reg.GPVirtual), Load(Param("there"), GP64()).(reg.GPVirtual)
	ones := GP64()
	MOVQ(I32(-1), ones)
	Label("loop")
	SUBQ(I32(lanes), n)
	JL(LabelRef("end"))
	flags, is := XMM(), K()
	if lanes == 8 {
		VMOVQ(Mem{Base: valid, Index: n, Scale: 1}, flags)
	} else {
		VMOVDQU8(Mem{Base: valid, Index: n, Scale: 1}, flags)
	}
	VPTESTMB(flags, flags, is)
	count, bits, some := GP64(), GP64(), K()
	KMOVQ(is, count)
	POPCNTQ(count, count)
	SUBQ(count, there)
	JL(LabelRef("end"))
	BZHIQ(count, ones, bits)
	KMOVQ(bits, some)
	x := ZMM()
	e.load(Mem{Base: v, Index: there, Scale: uint8(e.size)}, some, x)
	if e.size == 8 {
		VPEXPANDQ_Z(x, is, x)
	} else {
		VPEXPANDD_Z(x, is, x)
	}
	e.store(x, nil, Mem{Base: v, Index: n, Scale: uint8(e.size)})
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}

// spread256 writes the same for AVX2. A table has the permutation for each set of places of a vector.
func spread256(name, kind string) {
	e := elements(kind)
	lanes := 32 / e.size
	TEXT(name, NOSPLIT, "func(v *"+kind+", valid *byte, n, there int)")
	describe(name + " moves the first values of v to those of n places for which valid has a one, and puts 0 into " +
		"the other places. valid has there ones, and zeros. n is a multiple of " + strconv.Itoa(lanes) + ".")
	Pragma("noescape")
	v, valid := Load(Param("v"), GP64()), Load(Param("valid"), GP64())
	n, there := Load(Param("n"), GP64()).(reg.GPVirtual), Load(Param("there"), GP64()).(reg.GPVirtual)
	orders, zero := GP64(), YMM()
	LEAQ(spreadOrders(name+"Orders", lanes), orders)
	VPXOR(zero, zero, zero)
	Label("loop")
	CMPQ(there, n)
	JGE(LabelRef("end")) // the rest is in its place
	SUBQ(I32(lanes), n)
	is, set, count := YMM(), GP64(), GP64()
	if flags := (Mem{Base: valid, Index: n, Scale: 1}); lanes == 4 {
		VPMOVZXBQ(flags, is)
		VPSUBQ(is, zero, is)
		VMOVMSKPD(is, set.As32())
	} else {
		VPMOVZXBD(flags, is)
		VPSUBD(is, zero, is)
		VMOVMSKPS(is, set.As32())
	}
	POPCNTL(set.As32(), count.As32())
	SUBQ(count, there)
	JL(LabelRef("end"))
	order, x := YMM(), YMM()
	VPMOVZXBD(Mem{Base: orders, Index: set, Scale: 8}, order)
	VPERMD(Mem{Base: v, Index: there, Scale: uint8(e.size)}, order, x)
	VPAND(is, x, x)
	VMOVDQU(x, Mem{Base: v, Index: n, Scale: uint8(e.size)})
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}

// spreadOrders returns the table of spread256: for each set of places eight bytes, the 32-bit lanes of adjacent values
// that go to the 32-bit lanes of a vector.
func spreadOrders(name string, lanes int) Mem {
	table := GLOBL(name, RODATA|NOPTR)
	words := 8 / lanes // of 32 bits in an element
	for set := range 1 << lanes {
		order := uint64(0)
		for lane := range lanes {
			from := bits.OnesCount(uint(set) & (1<<lane - 1))
			for w := range words {
				order |= uint64(from*words+w) << (8 * (lane*words + w))
			}
		}
		DATA(8*set, U64(order))
	}
	return table
}

// join4 and join8 write the kernels that assemble values whose bytes lie in separate streams.
func join4() {
	TEXT("join4x512", NOSPLIT, "func(dst *uint32, src *byte, n, stride int)")
	describe("join4x512 puts together n values of 4 bytes, which lie stride bytes apart.")
	Pragma("noescape")
	join(4, 16, func(m Mem, k reg.Register, x reg.VecVirtual) {
		if k != nil {
			VPMOVZXBD_Z(m, k, x)
			return
		}
		VPMOVZXBD(m, x)
	}, func(n uint64, x reg.VecVirtual) { VPSLLD(Imm(n), x, x) })
}

func join8() {
	TEXT("join8x512", NOSPLIT, "func(dst *uint64, src *byte, n, stride int)")
	describe("join8x512 puts together n values of 8 bytes, which lie stride bytes apart.")
	Pragma("noescape")
	join(8, 8, func(m Mem, k reg.Register, x reg.VecVirtual) {
		if k != nil {
			VPMOVZXBQ_Z(m, k, x)
			return
		}
		VPMOVZXBQ(m, x)
	}, func(n uint64, x reg.VecVirtual) { VPSLLQ(Imm(n), x, x) })
}

func join(size, lanes int, load func(m Mem, k reg.Register, x reg.VecVirtual), shift func(n uint64, x reg.VecVirtual)) {
	dst, n, streams := joinParams(size)
	at := GP64()
	XORQ(at, at)
	loop{n: n, lanes: lanes, masked: true,
		body: func(_ int, k reg.Register) {
			var sum reg.VecVirtual
			for i := range streams {
				x := ZMM()
				load(Mem{Base: streams[i], Index: at, Scale: 1}, k, x)
				if i == 0 {
					sum = x
					continue
				}
				shift(uint64(8*i), x)
				VPORQ(x, sum, sum)
			}
			if size == 4 {
				store32(sum, k, Mem{Base: dst})
			} else {
				store64(sum, k, Mem{Base: dst})
			}
		},
		advance: func(elements int) {
			ADDQ(I32(elements), at)
			ADDQ(I32(size*elements), dst)
		}}.emit()
}

// joinParams reads the parameters of a kernel that joins, and returns where each stream begins.
func joinParams(size int) (dst reg.Register, n reg.GPVirtual, streams []reg.GPVirtual) {
	dst = Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	n = Load(Param("n"), GP64()).(reg.GPVirtual)
	stride := Load(Param("stride"), GP64())
	streams = make([]reg.GPVirtual, size)
	for i := range streams {
		streams[i] = GP64()
		if i == 0 {
			MOVQ(src, streams[i])
			continue
		}
		LEAQ(Mem{Base: streams[i-1], Index: stride, Scale: 1}, streams[i])
	}
	return dst, n, streams
}

// join256 writes the kernel for AVX2, 32 values at a time: bytes of two streams are interleaved, then words of two
// such results, and for eight bytes double words. Each step works inside the halves of a register, so that the last
// one puts the halves in order.
func join256(name, kind string, size int) {
	TEXT(name, NOSPLIT, "func(dst *"+kind+", src *byte, n, stride int)")
	describe(name + " puts together the first n/32*32 of n values of " + strconv.Itoa(size) +
		" bytes, which lie stride bytes apart, with AVX2.")
	Pragma("noescape")
	dst, n, streams := joinParams(size)
	at := GP64()
	XORQ(at, at)
	type unpack func(y, x, to Op)
	// interleaved mixes the elements of x and y, and returns the lower and the upper half of the result. The upper half is
	// in y's register.
	interleaved := func(low, high unpack, x, y reg.VecVirtual) (first, second reg.VecVirtual) {
		t := YMM()
		low(y, x, t)
		high(y, x, y)
		return t, y
	}
	loop{n: n, lanes: 32,
		body: func(int, reg.Register) {
			parts := make(vectors, size) // the streams' bytes, then parts of values, in the order of the values
			for i := 0; i < size; i += 2 {
				x, y := YMM(), YMM()
				VMOVDQU(Mem{Base: streams[i], Index: at, Scale: 1}, x)
				VMOVDQU(Mem{Base: streams[i+1], Index: at, Scale: 1}, y)
				parts[i/2], parts[size/2+i/2] = interleaved(func(y, x, to Op) { VPUNPCKLBW(y, x, to) },
					func(y, x, to Op) { VPUNPCKHBW(y, x, to) }, x, y)
			}
			// each step joins neighbours among parts that hold the same values
			parts = joinNeighbours(parts, size/2, func(x, y reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
				return interleaved(func(y, x, to Op) { VPUNPCKLWD(y, x, to) }, func(y, x, to Op) { VPUNPCKHWD(y, x, to) }, x, y)
			})
			if size == 8 {
				parts = joinNeighbours(parts, 2, func(x, y reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
					return interleaved(func(y, x, to Op) { VPUNPCKLDQ(y, x, to) }, func(y, x, to Op) { VPUNPCKHDQ(y, x, to) }, x, y)
				})
			}
			for i := 0; i < size; i += 2 {
				low := YMM()
				VPERM2I128(Imm(0x20), parts[i+1], parts[i], low)
				VPERM2I128(Imm(0x31), parts[i+1], parts[i], parts[i+1])
				VMOVDQU(low, Mem{Base: dst, Disp: 16 * i})
				VMOVDQU(parts[i+1], Mem{Base: dst, Disp: 16*i + 16*size})
			}
		},
		advance: func(elements int) {
			ADDQ(I32(elements), at)
			ADDQ(I32(size*elements), dst)
		}}.emit()
}

// joinNeighbours takes parts in groups, of which each holds the parts of the same values, and joins each two neighbours
// of a group. The results' groups are half as large, and there are twice as many.
func joinNeighbours(parts vectors, group int, join func(x, y reg.VecVirtual) (first, second reg.VecVirtual)) vectors {
	joined := make(vectors, len(parts))
	for begin := 0; begin < len(parts); begin += group {
		for i := 0; i < group; i += 2 {
			joined[begin+i/2], joined[begin+group/2+i/2] = join(parts[begin+i], parts[begin+i+1])
		}
	}
	return joined
}
