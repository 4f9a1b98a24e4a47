package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The parts of snappy.tagTable, in bytes from its beginning.
const (
	tagHighs   = 4 * 256
	tagLengths = 8 * 256
)

// snappySpan is the constant span of package snappy.
const snappySpan = 2048

// snappyKernels writes the kernels of package snappy: the lengths of the elements that could begin at each byte, and
// the walk from element to element.
func snappyKernels() {
	elementSizes512()
	snappyWalk()
}

// elementSizes512 computes a vector of sizes ahead of the vector that it stores, since the element behind one may begin
// in the next vector.
func elementSizes512() {
	const name = "elementSizes512"
	TEXT(name, NOSPLIT, "func(sizes *[2][2048]byte, src *byte, n int)")
	describe(name + " sets sizes[0][i] to the bytes that an element takes if it begins at src[i], and sizes[1][i] to " +
		"the bytes that this element and the element behind it take, for i below n, a positive multiple of 64. It " +
		"reads n+64 bytes. A size is 0 where a literal is longer than 60 bytes.")
	Pragma("noescape")
	sizes, src := Load(Param("sizes"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	kinds, low, two, long := z512.all32(0x03030303), z512.all32(0x3f3f3f3f), z512.all32(0x02020202),
		z512.all32(0xf0f0f0f0)
	copies := z512.all32(0x05030200) // the sizes of copies by the tag's two lowest bits
	lane := ZMM()
	numbers := GLOBL("snappyLanes", RODATA|NOPTR)
	for i := range 64 {
		DATA(i, U8(i))
	}
	VMOVDQU8(numbers, lane)
	size := func(from Mem, to reg.VecVirtual) {
		tags, isLiteral, isLong := ZMM(), K(), K()
		VMOVDQU8(from, tags)
		VPTESTNMB(kinds, tags, isLiteral)
		VPCMPUB(Imm(5), long, tags, isLiteral, isLong)
		VPANDD(kinds, tags, to)
		VPSHUFB(to, copies, to)
		VPSRLW(Imm(2), tags, tags)
		VPANDD(low, tags, tags)
		VPADDB(two, tags, isLiteral, to)
		zero := ZMM()
		VPXORD(zero, zero, zero)
		VMOVDQU8(zero, isLong, to)
	}
	here, next := ZMM(), ZMM()
	size(Mem{Base: src}, here)
	Label("vector")
	size(Mem{Base: src, Disp: 64}, next)
	behind, known := ZMM(), K()
	VPADDB(lane, here, behind)
	VPERMI2B(next, here, behind)
	VPTESTMB(behind, behind, known)
	VPADDB_Z(here, behind, known, behind)
	VMOVDQU8(here, Mem{Base: sizes})
	VMOVDQU8(behind, Mem{Base: sizes, Disp: snappySpan})
	VMOVDQA64(next, here)
	ADDQ(I32(64), src)
	ADDQ(I32(64), sizes)
	SUBQ(I32(64), n)
	JNE(LabelRef("vector"))
	VZEROUPPER()
	RET()
}

// snappyWalk decodes two elements a turn. Only the load of their size together is in the chain from turn to turn. The
// kind of an element is no branch: a table gives the bits of its offset and its length.
func snappyWalk() {
	TEXT("walk", NOSPLIT, "func(dst *byte, at, room int, src *byte, from, n int, sizes *[2][2048]byte, "+
		"tags *uint32) (to, element int)")
	describe("walk decodes elements from src[from] on until one begins at src[n] or behind, and writes them from " +
		"dst[at] on while at is not above room. It also stops at an element whose size is 0, at a copy that overlaps " +
		"itself, and at a copy from before dst. It returns at and the element at which it stopped. It writes up to " +
		"128 bytes behind room and reads up to 128 bytes behind src[n].")
	Pragma("noescape")
	base := Load(Param("dst"), GP64())
	d := Load(Param("at"), GP64())
	room := Load(Param("room"), GP64())
	ADDQ(base, d)
	ADDQ(base, room)
	src, p := Load(Param("src"), GP64()), Load(Param("from"), GP64())
	n, sizes := Load(Param("n"), GP64()), Load(Param("sizes"), GP64())
	tags := Load(Param("tags"), GP64())

	var later []func() // what lies behind the loop
	element := func(name string, p reg.Register, stop string) {
		tag, offset, length, from, to := GP64(), GP64(), GP64(), GP64(), GP64()
		MOVBLZX(Mem{Base: src, Index: p, Scale: 1}, tag.As32())
		MOVL(Mem{Base: src, Index: p, Scale: 1, Disp: 1}, offset.As32())
		ANDL(Mem{Base: tags, Index: tag, Scale: 4}, offset.As32())
		ORL(Mem{Base: tags, Index: tag, Scale: 4, Disp: tagHighs}, offset.As32())
		MOVBLZX(Mem{Base: tags, Index: tag, Scale: 1, Disp: tagLengths}, length.As32())
		CMPQ(offset, length)
		JB(LabelRef(stop))
		MOVQ(d, to)
		SUBQ(base, to)
		CMPQ(to, offset)
		JB(LabelRef(stop))
		LEAQ(Mem{Base: src, Index: p, Scale: 1, Disp: 1}, from)
		MOVQ(d, to)
		SUBQ(offset, to)
		TESTB(Imm(3), tag.As8())
		CMOVQNE(to, from)
		x := XMM()
		VMOVDQU(Mem{Base: from}, x)
		VMOVDQU(x, Mem{Base: d})
		CMPL(length.As32(), Imm(16))
		JA(LabelRef(name + "_long"))
		Label(name + "_done")
		ADDQ(length, d)
		later = append(later, func() {
			Label(name + "_long")
			y, z := YMM(), XMM()
			VMOVDQU(Mem{Base: from, Disp: 16}, y)
			VMOVDQU(Mem{Base: from, Disp: 48}, z)
			VMOVDQU(y, Mem{Base: d, Disp: 16})
			VMOVDQU(z, Mem{Base: d, Disp: 48})
			JMP(LabelRef(name + "_done"))
		})
	}
	Label("turn")
	CMPQ(p, n)
	JAE(LabelRef("done"))
	CMPQ(d, room)
	JA(LabelRef("done"))
	both, second := GP64(), GP64()
	MOVBLZX(Mem{Base: sizes, Index: p, Scale: 1, Disp: snappySpan}, both.As32())
	MOVBLZX(Mem{Base: sizes, Index: p, Scale: 1}, second.As32())
	TESTL(both.As32(), both.As32())
	JE(LabelRef("one"))
	ADDQ(p, second)
	element("first", p, "done")
	element("second", second, "stopped_at_second")
	ADDQ(both, p)
	JMP(LabelRef("turn"))
	Label("one") // the element behind it is a long literal, or this one is
	TESTL(second.As32(), second.As32())
	JE(LabelRef("done"))
	element("single", p, "done")
	ADDQ(second, p)
	JMP(LabelRef("turn"))
	for _, emit := range later {
		emit()
	}
	Label("stopped_at_second")
	MOVQ(second, p)
	Label("done")
	SUBQ(base, d)
	Store(d, ReturnIndex(0))
	Store(p, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
