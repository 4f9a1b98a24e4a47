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

// snappyKernels writes the kernels of package snappy: the sizes of the elements that could begin at each byte, and the
// walk from element to element.
func snappyKernels() {
	elementSizes512()
	elementSizes256()
	snappyWalkPairs()
	snappyWalkSingly()
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

// elementSizes256 has no permutation across 64 bytes, and leaves out the sizes of two elements.
func elementSizes256() {
	const name = "elementSizes256"
	TEXT(name, NOSPLIT, "func(sizes *[2][2048]byte, src *byte, n int)")
	describe(name + " sets sizes[0][i] to the bytes that an element takes if it begins at src[i], for i below n, a " +
		"positive multiple of 64. A size is 0 where a literal is longer than 60 bytes.")
	Pragma("noescape")
	sizes, src := Load(Param("sizes"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64())
	kinds, low, two, most := y256.all32(0x03030303), y256.all32(0x3f3f3f3f), y256.all32(0x02020202),
		y256.all32(61<<24|61<<16|61<<8|61)
	copies, zero := y256.all32(0x05030200), YMM()
	VPXOR(zero, zero, zero)
	Label("vector")
	for i := range 2 {
		tags, kind, isLiteral, isLong := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: src, Disp: 32 * i}, tags)
		VPAND(kinds, tags, kind)
		VPCMPEQB(zero, kind, isLiteral)
		VPSHUFB(kind, copies, kind)
		VPSRLW(Imm(2), tags, tags)
		VPAND(low, tags, tags)
		VPADDB(two, tags, tags)
		VPCMPGTB(most, tags, isLong)
		VPANDN(tags, isLong, tags)
		VPBLENDVB(isLiteral, tags, kind, kind)
		VMOVDQU(kind, Mem{Base: sizes, Disp: 32 * i})
	}
	ADDQ(I32(64), src)
	ADDQ(I32(64), sizes)
	SUBQ(I32(64), n)
	JNE(LabelRef("vector"))
	VZEROUPPER()
	RET()
}

// walker is what the walks from element to element have in common.
type walker struct {
	base, d, room, src, p, n, sizes, tags reg.Register

	later []func() // what lies behind the loop
}

const walkDoc = " decodes elements from src[from] on until one begins at src[n] or behind, and writes them from " +
	"dst[at] on while at is not above room. It also stops at an element whose size is 0, at a copy that overlaps " +
	"itself, and at a copy from before dst. It returns at and the element at which it stopped. It writes up to 128 " +
	"bytes behind room and reads up to 128 bytes behind src[n]."

// beginWalk begins a walk's function and its loop.
func beginWalk(name, sizes string) *walker {
	TEXT(name, NOSPLIT, "func(dst *byte, at, room int, src *byte, from, n int, sizes *[2][2048]byte, "+
		"tags *uint32) (to, element int)")
	describe(name + walkDoc + sizes)
	Pragma("noescape")
	get := func(name string) reg.Register { return Load(Param(name), GP64()) }
	w := &walker{base: get("dst"), d: get("at"), room: get("room")}
	ADDQ(w.base, w.d)
	ADDQ(w.base, w.room)
	w.src, w.p, w.n, w.sizes, w.tags = get("src"), get("from"), get("n"), get("sizes"), get("tags")
	Label("turn")
	CMPQ(w.p, w.n)
	JAE(LabelRef("done"))
	CMPQ(w.d, w.room)
	JA(LabelRef("done"))
	return w
}

// element decodes the element at src[p], or jumps to stop.
func (w *walker) element(name string, p reg.Register, stop string) {
	tag, offset, length, from, to := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVBLZX(Mem{Base: w.src, Index: p, Scale: 1}, tag.As32())
	MOVL(Mem{Base: w.src, Index: p, Scale: 1, Disp: 1}, offset.As32())
	ANDL(Mem{Base: w.tags, Index: tag, Scale: 4}, offset.As32())
	ORL(Mem{Base: w.tags, Index: tag, Scale: 4, Disp: tagHighs}, offset.As32())
	MOVBLZX(Mem{Base: w.tags, Index: tag, Scale: 1, Disp: tagLengths}, length.As32())
	CMPQ(offset, length)
	JB(LabelRef(stop))
	MOVQ(w.d, to)
	SUBQ(w.base, to)
	CMPQ(to, offset)
	JB(LabelRef(stop))
	LEAQ(Mem{Base: w.src, Index: p, Scale: 1, Disp: 1}, from)
	MOVQ(w.d, to)
	SUBQ(offset, to)
	TESTB(Imm(3), tag.As8())
	CMOVQNE(to, from)
	x := XMM()
	VMOVDQU(Mem{Base: from}, x)
	VMOVDQU(x, Mem{Base: w.d})
	CMPL(length.As32(), Imm(16))
	JA(LabelRef(name + "_long"))
	Label(name + "_done")
	ADDQ(length, w.d)
	w.later = append(w.later, func() {
		Label(name + "_long")
		y, z := YMM(), XMM()
		VMOVDQU(Mem{Base: from, Disp: 16}, y)
		VMOVDQU(Mem{Base: from, Disp: 48}, z)
		VMOVDQU(y, Mem{Base: w.d, Disp: 16})
		VMOVDQU(z, Mem{Base: w.d, Disp: 48})
		JMP(LabelRef(name + "_done"))
	})
}

// end emits what lies behind the loop, but for the label done, and then the end of the function.
func (w *walker) end(before func()) {
	for _, emit := range w.later {
		emit()
	}
	before()
	Label("done")
	SUBQ(w.base, w.d)
	Store(w.d, ReturnIndex(0))
	Store(w.p, ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// snappyWalkPairs decodes two elements a turn. Only the load of their size together is in the chain from turn to turn.
// The kind of an element is no branch: a table gives the bits of its offset and its length.
func snappyWalkPairs() {
	w := beginWalk("walkPairs", "")
	both, second := GP64(), GP64()
	MOVBLZX(Mem{Base: w.sizes, Index: w.p, Scale: 1, Disp: snappySpan}, both.As32())
	MOVBLZX(Mem{Base: w.sizes, Index: w.p, Scale: 1}, second.As32())
	TESTL(both.As32(), both.As32())
	JE(LabelRef("one"))
	ADDQ(w.p, second)
	w.element("first", w.p, "done")
	w.element("second", second, "stopped_at_second")
	ADDQ(both, w.p)
	JMP(LabelRef("turn"))
	Label("one") // the element behind it is a long literal, or this one is
	TESTL(second.As32(), second.As32())
	JE(LabelRef("done"))
	w.element("single", w.p, "done")
	ADDQ(second, w.p)
	JMP(LabelRef("turn"))
	w.end(func() {
		Label("stopped_at_second")
		MOVQ(second, w.p)
	})
}

// snappyWalkSingly decodes an element a turn, since it has no sizes of two.
func snappyWalkSingly() {
	w := beginWalk("walkSingly", " It reads sizes[0] alone.")
	size := GP64()
	MOVBLZX(Mem{Base: w.sizes, Index: w.p, Scale: 1}, size.As32())
	TESTL(size.As32(), size.As32())
	JE(LabelRef("done"))
	w.element("only", w.p, "done")
	ADDQ(size, w.p)
	JMP(LabelRef("turn"))
	w.end(func() {})
}
