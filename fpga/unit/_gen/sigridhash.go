package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sigridHash writes eight kernels: two widths, floorMod by divisors of two sizes, and hashes as int64 and as int32.
func sigridHash() {
	for _, to := range []idStore{{name: "", kind: "int64", size: 8, store: store64}, {name: "To32x", kind: "byte", size: 4, store: storeLow32}} {
		hashKernel("hashWide", "512", z512, newWide512, to)
		hashKernel("hashSmall", "512", z512, newSmall512, to)
		hashKernel("hashWide", "256", y256, newWide256, to)
		hashKernel("hashSmall", "256", y256, newSmall256, to)
	}
	hashSumKernel()
	sigridHashShifts()
}

// idStore says how a kernel stores ids.
type idStore struct {
	name, kind string
	size       int
	store      func(x, k reg.Register, m Mem)
}

func hashKernel(name, width string, v vector, divisor func() modulus, to idStore) {
	name += to.name + width
	TEXT(name, NOSPLIT, "func(dst *"+to.kind+", src *int64, n int, salt, d uint64, inverse float64)")
	as := map[int]string{8: "", 4: ", and writes the low 32 bits of each hash,"}[to.size]
	if v.bits == 512 {
		describe(name + " hashes n ids" + as + " with AVX-512.")
	} else {
		describe(name + " hashes the first n/4*4 of n ids" + as + " with AVX2.")
	}
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	h := newHash(v)
	m := divisor()
	unroll := 2
	if v.bits == 512 {
		unroll = 4
	}
	loop{n: n, lanes: v.lanes64(), unroll: unroll, masked: v.bits == 512,
		body: func(vectors int, k reg.Register) {
			xs := v.regs(vectors)
			if v.bits == 512 && k == nil {
				readsAhead(src, vectors)
			}
			xs.each(func(i int, x reg.VecVirtual) { load64(Mem{Base: src, Disp: i * v.bytes}, k, x) })
			h.mix(xs)
			m.mod(xs)
			xs.each(func(i int, x reg.VecVirtual) { to.store(x, k, Mem{Base: dst, Disp: i * to.size * v.lanes64()}) })
		},
		advance: func(elements int) {
			ADDQ(I32(8*elements), src)
			ADDQ(I32(to.size*elements), dst)
		}}.emit()
}

// hashSumKernel writes a kernel that hashes ids and folds their bytes for a checksum, as fold512 in checksum.go
// does. Both steps take four registers, 256 bytes, at a time. So the ids are read once, and the hashes are computed
// while the ids come from memory.
func hashSumKernel() {
	const name = "hashWideTo32Sum512"
	far := crcFactors("far", 8*crcStride)
	TEXT(name, NOSPLIT, "func(left *[16]byte, dst *byte, src *int64, n int, salt, d uint64, inverse float64, state uint32)")
	describe(name + " hashes n ids, writes the low 32 bits of each hash, and sets left to a message that has the " +
		"remainder of the ids' bytes, to which state is added first. n is a multiple of 32 above 0.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	h := newHash(z512)
	m := newWide512()
	k, first := ZMM(), ZMM()
	VMOVDQU64(far, k)
	acc := z512.regs(crcLanes)
	acc.each(func(_ int, a reg.VecVirtual) { VPXORQ(a, a, a) })
	VMOVD(Load(Param("state"), GP32()), first.AsX()) // clears the rest
	Label("loop")
	xs := z512.regs(crcLanes)
	readsAhead(src, crcLanes)
	xs.each(func(i int, x reg.VecVirtual) { VMOVDQU64(Mem{Base: src, Disp: 64 * i}, x) })
	acc.each(func(i int, a reg.VecVirtual) {
		low := ZMM()
		VPCLMULQDQ(Imm(0x00), k, a, low)
		VPCLMULQDQ(Imm(0x11), k, a, a)
		VPTERNLOGQ(Imm(0x96), xs[i], low, a)
	})
	VPXORQ(first, acc[0], acc[0])
	VPXORQ(first, first, first)
	h.mix(xs)
	m.mod(xs)
	xs.each(func(i int, x reg.VecVirtual) { storeLow32(x, nil, Mem{Base: dst, Disp: 32 * i}) })
	ADDQ(I32(crcStride), src)
	ADDQ(I32(crcStride/2), dst)
	SUBQ(I32(crcStride/8), n)
	JNZ(LabelRef("loop"))
	left := Load(Param("left"), GP64())
	crcFinish(acc, k, left)
	VZEROUPPER()
	RET()
}

// hash emits hash_128_to_64(salt, twang_mix64(x)).
type hash struct {
	v                  vector
	salt               reg.VecVirtual
	ones, mul, mulHigh Op
	sums               map[uint64]reg.VecVirtual // AVX-512: factors that stand for sums of shifts
}

func newHash(v vector) hash {
	const m = 0x9ddfea08eb382d69
	h := hash{v: v, salt: v.param64("salt"), sums: map[uint64]reg.VecVirtual{}}
	if v.bits == 256 {
		h.ones, h.mul, h.mulHigh = words256(1<<64-1), words256(m), words256(m>>32)
		return h
	}
	h.ones, h.mul = v.all(1<<64-1), v.all(m)
	for _, f := range []uint64{1<<21 - 1, 1 + 1<<3 + 1<<8, 1 + 1<<2 + 1<<4, 1 + 1<<31} {
		h.sums[f] = v.all(f)
	}
	return h
}

func (h hash) mix(xs vectors) {
	h.twang(xs)
	h.xor(xs, h.salt)
	h.times(xs)
	h.foldSalt(xs, 47)
	h.times(xs)
	h.fold(xs, 47)
	h.times(xs)
}

// foldSalt is x ^= x >> by ^ salt.
func (h hash) foldSalt(xs vectors, by uint64) {
	if h.v.bits == 256 {
		h.fold(xs, by)
		h.xor(xs, h.salt)
		return
	}
	t := h.v.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VPSRLQ(Imm(by), x, t[i]) })
	xs.each(func(i int, x reg.VecVirtual) { VPTERNLOGQ(Imm(0x96), h.salt, t[i], x) })
}

// twang is twang_mix64. With AVX-512 it multiplies instead of adding shifts: on Zen 5, which has two ports for
// shifts, a hash takes 0.34 ns with multiplications and 0.44 ns with shifts. AVX2 has no multiplication of 64 bits.
func (h hash) twang(xs vectors) {
	// ~x + x<<21 is x (2^21 - 1) - 1.
	h.sum(xs, 1<<21-1)
	xs.each(func(_ int, x reg.VecVirtual) { VPADDQ(h.ones, x, x) })
	h.fold(xs, 24)
	h.sum(xs, 1+1<<3+1<<8)
	h.fold(xs, 14)
	h.sum(xs, 1+1<<2+1<<4)
	h.fold(xs, 28)
	h.sum(xs, 1+1<<31)
}

// sum multiplies by a factor that is a sum of a few powers of two: 1 among them, or -1.
func (h hash) sum(xs vectors, factor uint64) {
	if h.v.bits == 512 {
		xs.each(func(_ int, x reg.VecVirtual) { VPMULLQ(h.sums[factor], x, x) })
		return
	}
	if factor == 1<<21-1 {
		t := h.v.regs(len(xs))
		xs.each(func(i int, x reg.VecVirtual) { VPSLLQ(Imm(21), x, t[i]) })
		xs.each(func(i int, x reg.VecVirtual) { VPSUBQ(x, t[i], x) })
		return
	}
	var terms []vectors
	for by := uint64(1); by < 64; by++ {
		if factor>>by&1 != 0 {
			t := h.v.regs(len(xs))
			xs.each(func(i int, x reg.VecVirtual) { VPSLLQ(Imm(by), x, t[i]) })
			terms = append(terms, t)
		}
	}
	for _, t := range terms {
		xs.each(func(i int, x reg.VecVirtual) { VPADDQ(t[i], x, x) })
	}
}

// fold is x ^= x >> by.
func (h hash) fold(xs vectors, by uint64) {
	t := h.v.regs(len(xs))
	xs.each(func(i int, x reg.VecVirtual) { VPSRLQ(Imm(by), x, t[i]) })
	xs.each(func(i int, x reg.VecVirtual) { h.v.xor(t[i], x) })
}

func (h hash) xor(xs vectors, y reg.VecVirtual) {
	xs.each(func(_ int, x reg.VecVirtual) { h.v.xor(y, x) })
}

func (h hash) times(xs vectors) {
	if h.v.bits == 256 {
		multiply256(xs, h.mul, h.mulHigh)
		return
	}
	xs.each(func(_ int, x reg.VecVirtual) { VPMULLQ(h.mul, x, x) })
}
