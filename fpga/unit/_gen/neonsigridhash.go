package main

import (
	"fmt"
	"strings"
)

// neonSigridHash writes four kernels: floorMod by divisors of two sizes, and hashes as int64 and as int32.
func neonSigridHash(a *arm64File) {
	for _, to32 := range []bool{false, true} {
		neonHashKernel(a, "hashWide", false, to32)
		neonHashKernel(a, "hashSmall", true, to32)
	}
}

// neonHash holds the constants of a kernel.
type neonHash struct {
	a               *arm64File
	saltLow, saltUp vreg // halves of the salt, in 32-bit lanes
	mulLow, mulUp   vreg // halves of hash_128_to_64's multiplier, likewise
	modulus         neonModulus
}

// half holds the halves of four 64-bit numbers: the lower ones in one register, the upper ones in another.
type half struct{ low, up vreg }

func neonHashKernel(a *arm64File, name string, small, to32 bool) {
	to, size, as := "int64", 8, ""
	if to32 {
		name, to, size, as = name+"To32", "byte", 4, ", and writes the low 32 bits of each hash"
	}
	limit := "2^14 to 2^31"
	if small {
		limit = "2 to 2^14"
	}
	name += "NEON"
	params := []param{{"dst", "*" + to}, {"src", "*int64"}, {"n", "int"}, {"salt", "uint64"}, {"d", "uint64"},
		{"reciprocal", "uint64"}, {"shift", "uint64"}, {"inverse", "float64"}}
	a.function(name, name+" hashes n ids, a multiple of 14 above 0"+as+". d is "+limit+".", params, "")
	for i, p := range params[:7] {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	h := neonHash{a: a, saltLow: a.vec(), saltUp: a.vec(), modulus: newNEONModulus(a, small, "R4", params[7])}
	a.line("VDUP R3, V%d.S4", h.saltLow)
	a.line("LSR $32, R3, R7")
	a.line("VDUP R7, V%d.S4", h.saltUp)
	a.line("MOVD $0x9ddfea08eb382d69, R7")
	h.mulLow, h.mulUp = a.everyLane(s4, 0xeb382d69), a.everyLane(s4, 0x9ddfea08)

	a.label("loop")
	a.interleaved(func() {
		xs := a.vecs(4)
		a.line("FLDPQ (R1), (F%d, F%d)", xs[0], xs[1])
		a.line("FLDPQ 32(R1), (F%d, F%d)", xs[2], xs[3])
		h.twang(xs)
		rs := h.mod(h.mix(h.split(xs)))
		if to32 {
			a.line("FSTPQ (F%d, F%d), (R0)", rs[0], rs[1])
			return
		}
		for i, r := range rs {
			a.storeWidened(r, 32*i)
		}
	}, func() { neonHashScalar(a, 8, to32) })
	a.line("ADD $112, R1")
	a.line("ADD $%d, R0", 14*size)
	a.line("SUBS $14, R2, R2")
	a.line("BNE loop")
	a.line("RET")
}

// neonHashScalar hashes six ids, from number first on, in general registers, as plain Go does, but that it adds shifted
// copies where plain Go multiplies by a small constant.
func neonHashScalar(a *arm64File, first int, to32 bool) {
	xs, ts := []string{"R8", "R9", "R10", "R11", "R12", "R13"}, []string{"R14", "R15", "R16", "R17", "R19", "R20"}
	each := func(text string) {
		for i := range xs {
			a.line("%s", strings.NewReplacer("x", xs[i], "t", ts[i]).Replace(text))
		}
	}
	fold := func(by int) { each(fmt.Sprintf("EOR x>>%d, x, x", by)) }
	for i := 0; i < len(xs); i += 2 {
		a.line("LDP %d(R1), (%s, %s)", 8*(first+i), xs[i], xs[i+1])
	}
	each("MVN x, t")
	each("ADD x<<21, t, x")
	fold(24)
	each("ADD x<<3, x, t")
	each("ADD x<<8, t, x")
	fold(14)
	each("ADD x<<2, x, t")
	each("ADD t<<2, x, x")
	fold(28)
	each("ADD x<<31, x, x")
	each("EOR R3, x, x")
	each("MUL R7, x, x")
	fold(47)
	each("EOR R3, x, x")
	each("MUL R7, x, x")
	fold(47)
	each("MUL R7, x, x")
	// floormod.Divisor's Mod.
	sign := []string{"R21", "R22", "R23", "R24", "R25", "R26"}
	for i := range xs {
		a.line("ASR $63, %s, %s", xs[i], sign[i])
		a.line("EOR %s, %s, %s", sign[i], xs[i], xs[i])
	}
	each("UMULH R5, x, t")
	each("LSR R6, t, t")
	each("MSUB t, x, R4, x")
	for i := range xs {
		a.line("EOR %s, %s, %s", sign[i], xs[i], xs[i])
		a.line("AND %s, R4, %s", sign[i], ts[i])
	}
	each("ADD t, x, x")
	for i := 0; i < len(xs); i += 2 {
		if to32 {
			a.line("STPW (%s, %s), %d(R0)", xs[i], xs[i+1], 4*(first+i))
		} else {
			a.line("STP (%s, %s), %d(R0)", xs[i], xs[i+1], 8*(first+i))
		}
	}
}

// twang is twang_mix64 of every 64-bit lane.
func (h *neonHash) twang(xs []vreg) {
	a, t := h.a, h.a.vecs(4)
	plusShifted := func(bits ...int) { // x + x<<bits[0] + ...
		sums := h.a.vecs(4)
		for k, by := range bits {
			a.each("shl", d2, t, func(i int) []any { return []any{xs[i], by} })
			if k == 0 {
				a.each("add", d2, sums, func(i int) []any { return []any{xs[i], t[i]} })
			} else {
				a.each("add", d2, sums, func(i int) []any { return []any{sums[i], t[i]} })
			}
		}
		a.free(xs...)
		copy(xs, sums)
	}
	fold := func(by int) {
		a.each("ushr", d2, t, func(i int) []any { return []any{xs[i], by} })
		a.each("eor", b16, xs, func(i int) []any { return []any{xs[i], t[i]} })
	}
	a.each("shl", d2, t, func(i int) []any { return []any{xs[i], 21} })
	a.each("not", b16, xs, func(i int) []any { return []any{xs[i]} })
	a.each("add", d2, xs, func(i int) []any { return []any{xs[i], t[i]} })
	fold(24)
	plusShifted(3, 8)
	fold(14)
	plusShifted(2, 4)
	fold(28)
	plusShifted(31)
	a.free(t...)
}

// split takes the halves of 64-bit lanes apart, for products: NEON multiplies no 64-bit lanes.
func (h *neonHash) split(xs []vreg) []half {
	var hs []half
	for i := 0; i < len(xs); i += 2 {
		p := half{h.a.vec(), h.a.vec()}
		h.a.i("uzp1", s4, p.low, xs[i], xs[i+1])
		h.a.i("uzp2", s4, p.up, xs[i], xs[i+1])
		hs = append(hs, p)
	}
	h.a.free(xs...)
	return hs
}

// mix is hash_128_to_64 of the salt and every number, up to its last product.
func (h *neonHash) mix(hs []half) []half {
	salt := func() {
		for _, x := range hs {
			h.a.i("eor", b16, x.low, x.low, h.saltLow)
			h.a.i("eor", b16, x.up, x.up, h.saltUp)
		}
	}
	fold := func() { // x ^= x >> 47
		for _, x := range hs {
			t := h.a.vec()
			h.a.i("ushr", s4, t, x.up, 15)
			h.a.i("eor", b16, x.low, x.low, t)
			h.a.free(t)
		}
	}
	salt()
	h.times(hs)
	fold()
	salt()
	h.times(hs)
	fold()
	return hs
}

// crossed returns the upper halves' part of every number's product with the multiplier: the products of a lower and an
// upper half, modulo 2^32.
func (h *neonHash) crossed(hs []half) []vreg {
	cs := h.a.vecs(len(hs))
	h.a.each("mul", s4, cs, func(i int) []any { return []any{hs[i].up, h.mulLow} })
	h.a.each("mla", s4, cs, func(i int) []any { return []any{hs[i].low, h.mulUp} })
	return cs
}

// times multiplies every number by the multiplier, modulo 2^64.
func (h *neonHash) times(hs []half) {
	cs := h.crossed(hs)
	for i, x := range hs {
		even, odd := h.a.vec(), h.a.vec()
		h.a.i("umull", s2, even, x.low, h.mulLow)
		h.a.i("umull", s4, odd, x.low, h.mulLow)
		h.a.i("uzp1", s4, x.low, even, odd)
		h.a.i("uzp2", s4, x.up, even, odd)
		h.a.i("add", s4, x.up, x.up, cs[i])
		h.a.free(even, odd, cs[i])
	}
}

// mod does the last product and returns its remainders, four in a register.
func (h *neonHash) mod(hs []half) []vreg {
	a := h.a
	var rs []vreg
	cs := h.crossed(hs)
	for i, x := range hs {
		p := a.vecs(2)
		for k, l := range []arrangement{s2, s4} {
			a.i("shll", l, p[k], cs[i])
			a.i("umlal", l, p[k], x.low, h.mulLow)
		}
		a.free(x.low, x.up, cs[i])
		rs = append(rs, h.modulus.remainders(p))
	}
	return rs
}
