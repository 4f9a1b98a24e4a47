package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bucketizeKernels writes one kernel for each type of source and width.
func bucketizeKernels() {
	bucketKernel("bucketFloat32x512", "float32", 4, func(src Mem, k, _ reg.Register, y reg.VecVirtual) {
		load32(src, k, y)
	})
	bucketKernel("bucketInt64x512", "int64", 8, func(src Mem, k, high reg.Register, y reg.VecVirtual) {
		convert16(src, k, high, y, func(x, to reg.Register) { VCVTQQ2PS(x, to) })
	})
	bucketKernel("bucketFloat64x512", "float64", 8, func(src Mem, k, high reg.Register, y reg.VecVirtual) {
		convert16(src, k, high, y, func(x, to reg.Register) { VCVTPD2PS(x, to) })
	})
	bucketKernel256("bucketFloat32x256", "float32", 4, func(src Mem, y reg.VecVirtual) { VMOVUPS(src, y) })
	bucketKernel256("bucketFloat64x256", "float64", 8, func(src Mem, y reg.VecVirtual) {
		half := XMM()
		VCVTPD2PSY(src, y.AsX())
		VCVTPD2PSY(src.Offset(32), half)
		VINSERTF128(Imm(1), half, y, y)
	})
	bucketKernel256("bucketInt64x256", "int64", 8, nearestFloats)
}

// convert16 loads 16 lanes of 64 bits and converts them to 16 lanes of 32 bits.
func convert16(src Mem, k, high reg.Register, y reg.VecVirtual, convert func(x, to reg.Register)) {
	low, upper := ZMM(), ZMM()
	load64(src, k, low)
	load64(src.Offset(64), high, upper)
	convert(low, y.AsY())
	half := YMM()
	convert(upper, half)
	VINSERTF32X8(Imm(1), half, y, y)
}

// bucketSignature is the signature of a lookup of values of a type.
func bucketSignature(kind string) string {
	return "func(dst *int64, src *" + kind + ", n int, regions *uint32, cells *uint64, thresholds *uint32, " +
		"low, high, shift uint32, more int, nanTo int64, stop bool) (done int)"
}

// bucketKernel writes the lookup of package bucketize's cells, 16 values at a time.
func bucketKernel(name, kind string, size int, load func(src Mem, k, high reg.Register, y reg.VecVirtual)) {
	TEXT(name, NOSPLIT, bucketSignature(kind))
	describe(name + " looks n values up with AVX-512. It compares each value with the first threshold of the value's " +
		"cell and with as many further thresholds as more says. If stop is set, it ends before the first 16 values " +
		"that hold a NaN; otherwise the bucket of a NaN is nanTo. It returns the number of values that it looked up.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	regions, cells := Load(Param("regions"), GP64()), Load(Param("cells"), GP64())
	thresholds := Load(Param("thresholds"), GP64())
	n, total, more := Load(Param("n"), GP64()).(reg.GPVirtual), GP64(), Load(Param("more"), GP64())
	MOVQ(n, total)
	v := z512
	b := &bucketLookup{regions: regions, cells: cells, thresholds: thresholds, more: more}
	b.low, b.high, b.nanTo = v.param32("low"), v.param32("high"), v.param64("nanTo")
	b.one, b.zero, b.sign, b.shiftOf = v.all(1), v.reg(), v.all32(1<<31), v.all32(31)
	VPXORD(b.zero, b.zero, b.zero)
	// the shift as the count of a vector instruction, and a mask of that number of bits
	count := Load(Param("shift"), GP32())
	b.shift, b.mask = XMM(), ZMM()
	VMOVD(count, b.shift)
	bits := GP32()
	MOVL(U32(1<<32-1), bits)
	BZHIL(count, bits, bits)
	VPBROADCASTD(bits, b.mask)
	stopMask := K()
	wish := GP32()
	Load(Param("stop"), wish.As8())
	MOVBLZX(wish.As8(), wish)
	NEGL(wish)
	KMOVW(wish, stopMask)

	b.lanes = K()
	MOVL(I32(-1), bits)
	KMOVW(bits, b.lanes)

	loop{n: n, lanes: 16, masked: true,
		body: func(_ int, k reg.Register) {
			var kHigh reg.Register
			if k != nil {
				up := K()
				KSHIFTRW(Imm(8), k, up)
				kHigh = up
			}
			y := ZMM()
			load(Mem{Base: src}, k, kHigh, y)
			nan := K()
			VCMPPS(Imm(3), y, y, nan)
			KTESTW(nan, stopMask)
			JNZ(LabelRef("end"))

			suffix := "Whole"
			if k != nil {
				suffix = "Rest"
			}
			key, at := b.findCells(y, suffix)
			found := b.findBuckets(key, at, suffix)
			VMOVDQA64(b.nanTo, nan, found[0])
			KSHIFTRW(Imm(8), nan, nan)
			VMOVDQA64(b.nanTo, nan, found[1])
			store64(found[0], k, Mem{Base: dst})
			store64(found[1], kHigh, Mem{Base: dst, Disp: 64})
		},
		advance: func(elements int) {
			ADDQ(I32(size*elements), src)
			ADDQ(I32(8*elements), dst)
		},
		end: func() {
			SUBQ(n, total)
			Store(total, ReturnIndex(0))
		}}.emit()
}

// bucketLookup is what a lookup keeps in registers.
type bucketLookup struct {
	regions, cells, thresholds, more reg.Register

	low, high, nanTo         reg.VecVirtual
	one, zero, sign, shiftOf reg.VecVirtual
	// The shift is the count of a vector instruction, and mask has as many bits.
	shift, mask reg.VecVirtual
	lanes       reg.OpmaskVirtual // It is all lanes, because a gather clears its mask.
}

// findCells returns the keys of 16 values, which order them as numbers, and the places of their cells. suffix tells the
// labels of the loop's bodies apart.
func (b *bucketLookup) findCells(y reg.VecVirtual, suffix string) (key, at reg.VecVirtual) {
	// The key: all bits of a negative number are inverted, and only the sign bit of other numbers; -0 + 0 is 0.
	key, t := ZMM(), ZMM()
	VADDPS(b.zero, y, key)
	VPSRAD(Imm(31), key, t)
	VPTERNLOGD(Imm(0x1e), b.sign, t, key) // key ^ (t | sign)
	at, region, within := ZMM(), ZMM(), ZMM()
	VPMAXUD(b.low, key, within)
	VPMINUD(b.high, within, within)
	VPSUBD(b.low, within, at)
	VPSRLD(b.shift, at, at)
	TESTQ(b.regions, b.regions)
	JZ(LabelRef("flat" + suffix))
	all := K()
	KMOVW(b.lanes, all)
	VPXORD(region, region, region)
	VPGATHERDD(Mem{Base: b.regions, Index: at, Scale: 4}, all, region)
	VPANDD(b.mask, within, within)
	VPANDD(b.shiftOf, region, at)
	VPSRLVD(at, within, within)
	VPSRLD(Imm(5), region, region)
	VPADDD(within, region, at)
	Label("flat" + suffix)
	return key, at
}

// findBuckets returns the buckets of 16 values with these keys and places of cells.
func (b *bucketLookup) findBuckets(key, at reg.VecVirtual, suffix string) vectors {
	places := []reg.Register{at.AsY(), YMM()}
	keys := []reg.Register{key.AsY(), YMM()}
	VEXTRACTI64X4(Imm(1), at, places[1])
	VEXTRACTI64X4(Imm(1), key, keys[1])
	found := z512.regs(2)
	found.each(func(i int, cell reg.VecVirtual) {
		wide, all := ZMM(), K()
		KMOVW(b.lanes, all)
		VPXORD(cell, cell, cell)
		VPGATHERDQ(Mem{Base: b.cells, Index: places[i], Scale: 8}, all, cell)
		VPMOVZXDQ(keys[i], wide)
		VPADDQ(wide, cell, cell)
		VPSRLQ(Imm(32), cell, cell)
	})

	left := GP64()
	MOVQ(b.more, left)
	Label("more" + suffix)
	TESTQ(left, left)
	JZ(LabelRef("enough" + suffix))
	found.each(func(i int, n reg.VecVirtual) {
		next, all, reached := YMM(), K(), K()
		KMOVW(b.lanes, all)
		VPXORD(next, next, next)
		VPGATHERQD(Mem{Base: b.thresholds, Index: n, Scale: 4}, all, next)
		VPCMPUD(Imm(5), next, keys[i], reached)
		VPADDQ(b.one, n, reached, n)
	})
	DECQ(left)
	JMP(LabelRef("more" + suffix))
	Label("enough" + suffix)
	return found
}

// bucketKernel256 writes the lookup with AVX2, eight values at a time. Eight plain loads in place of a gather, with the
// places of the cells taken from memory, took half as long again or twice as long on an Intel processor.
func bucketKernel256(name, kind string, size int, load func(src Mem, y reg.VecVirtual)) {
	TEXT(name, NOSPLIT, bucketSignature(kind))
	describe(name + " looks the first n/8*8 of n values up with AVX2, as " + strings.Replace(name, "256", "512", 1) +
		" does, except that a NaN ends it before the first eight values that hold one.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	regions, cells := Load(Param("regions"), GP64()), Load(Param("cells"), GP64())
	thresholds := Load(Param("thresholds"), GP64())
	n, more := Load(Param("n"), GP64()).(reg.GPVirtual), Load(Param("more"), GP64())
	v := y256
	low, high := v.param32("low"), v.param32("high")
	count, shift, mask := Load(Param("shift"), GP32()), XMM(), YMM()
	VMOVD(count, shift)
	bits := GP32()
	MOVL(U32(1<<32-1), bits)
	BZHIL(count, bits, bits)
	maskX := XMM()
	VMOVD(bits, maskX)
	VPBROADCASTD(maskX, mask)

	loop{n: n, lanes: 8,
		body: func(int, reg.Register) {
			y := YMM()
			load(Mem{Base: src}, y)
			nan, nans := YMM(), GP32()
			VCMPPS(Imm(3), y, y, nan)
			VMOVMSKPS(nan, nans)
			TESTL(nans, nans)
			JZ(LabelRef("look"))
			stop := GP32()
			Load(Param("stop"), stop.As8())
			TESTB(stop.As8(), stop.As8())
			JNZ(LabelRef("end"))
			Label("look")
			key, t := YMM(), YMM()
			VXORPS(t, t, t)
			VADDPS(t, y, key)
			VPSRAD(Imm(31), key, t)
			VPOR(repeated(v, 1<<63|1<<31), t, t)
			VPXOR(t, key, key)
			at, within := YMM(), YMM()
			VPMAXUD(low, key, within)
			VPMINUD(high, within, within)
			VPSUBD(low, within, at)
			VPSRLD(shift, at, at)
			TESTQ(regions, regions)
			JZ(LabelRef("flat"))
			all, region := YMM(), YMM()
			VPCMPEQD(all, all, all)
			VPXOR(region, region, region)
			VPGATHERDD(all, Mem{Base: regions, Index: at, Scale: 4}, region)
			VPAND(mask, within, within)
			VPAND(repeated(v, 31<<32|31), region, at)
			VPSRLVD(at, within, within)
			VPSRLD(Imm(5), region, region)
			VPADDD(within, region, at)
			Label("flat")
			places := []reg.VecVirtual{at, YMM()}
			keys := []reg.VecVirtual{key, YMM()}
			VEXTRACTI128(Imm(1), at, places[1].AsX())
			VEXTRACTI128(Imm(1), key, keys[1].AsX())
			found := v.regs(2)
			found.each(func(i int, cell reg.VecVirtual) {
				wide, all := YMM(), YMM()
				VPCMPEQD(all, all, all)
				VPXOR(cell, cell, cell)
				VPGATHERDQ(all, Mem{Base: cells, Index: places[i].AsX(), Scale: 8}, cell)
				VPMOVZXDQ(keys[i].AsX(), wide)
				VPADDQ(wide, cell, cell)
				VPSRLQ(Imm(32), cell, cell)
			})
			left := GP64()
			MOVQ(more, left)
			Label("more")
			TESTQ(left, left)
			JZ(LabelRef("enough"))
			found.each(func(i int, n reg.VecVirtual) {
				next, all, reached := XMM(), XMM(), YMM()
				VPCMPEQD(all, all, all)
				VPXOR(next, next, next)
				VPGATHERQD(all, Mem{Base: thresholds, Index: n, Scale: 4}, next)
				VPMAXUD(next, keys[i].AsX(), next)
				VPCMPEQD(next, keys[i].AsX(), next)
				VPMOVSXDQ(next, reached)
				VPSUBQ(reached, n, n)
			})
			DECQ(left)
			JMP(LabelRef("more"))
			Label("enough")
			VMOVDQU(found[0], Mem{Base: dst})
			VMOVDQU(found[1], Mem{Base: dst, Disp: 32})
			VPTEST(nan, nan)
			JZ(LabelRef("numbers"))
			nanTo := y256.param64("nanTo")
			for half := range 2 {
				wide := YMM()
				if half == 1 {
					VEXTRACTI128(Imm(1), nan, nan.AsX())
				}
				VPMOVSXDQ(nan.AsX(), wide)
				VPMASKMOVQ(nanTo, wide, Mem{Base: dst, Disp: 32 * half})
			}
			Label("numbers")
		},
		advance: func(elements int) {
			ADDQ(I32(size*elements), src)
			ADDQ(I32(8*elements), dst)
		},
		end: func() {
			done := GP64()
			Load(Param("n"), done)
			SUBQ(n, done)
			Store(done, ReturnIndex(0))
		}}.emit()
}
