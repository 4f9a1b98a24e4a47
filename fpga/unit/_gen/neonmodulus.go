package main

import "fmt"

// neonPositiveModulus writes kernels for divisors of two sizes.
func neonPositiveModulus(a *arm64File) {
	for _, small := range []bool{false, true} {
		name, limit := "modWideNEON", "2^14 to 2^31"
		if small {
			name, limit = "modSmallNEON", "2 to 2^14"
		}
		params := []param{{"dst", "*int64"}, {"src", "*int64"}, {"n", "int"}, {"d", "uint64"}, {"inverse", "float64"}}
		doc := name + " computes the remainders of n values, a multiple of 8 above 0. d is " + limit + "."
		a.function(name, doc, params, "")
		for i, p := range params[:4] {
			a.load(p, fmt.Sprintf("R%d", i))
		}
		m := newNEONModulus(a, small, "R3", params[4])
		a.label("loop")
		xs := a.vecs(4)
		a.line("FLDPQ (R1), (F%d, F%d)", xs[0], xs[1])
		a.line("FLDPQ 32(R1), (F%d, F%d)", xs[2], xs[3])
		a.line("ADD $64, R1")
		for i := 0; i < 4; i += 2 {
			a.storeWidened(m.remainders(xs[i:i+2]), 16*i)
		}
		a.line("ADD $64, R0")
		a.line("SUBS $8, R2")
		a.line("BNE loop")
		a.line("RET")
	}
}

// neonModulus holds the constants of floorMod by a divisor up to 2^31. Package floormod has the steps and their bounds.
// The remainders fit 32 bits, so that q d is computed modulo 2^32. The second step of small divisors is in float32, as
// in AVX-512's variant shifts, which has its bounds.
type neonModulus struct {
	a                *arm64File
	small            bool
	d, inverse       vreg // the divisor in 32-bit lanes, its reciprocal in float64
	magic, inverse32 vreg // for wide divisors, and for small ones
}

// newNEONModulus takes the divisor from a general register, and its reciprocal from the function's next parameter.
func newNEONModulus(a *arm64File, small bool, d string, inverse param) neonModulus {
	m := neonModulus{a: a, small: small, d: a.vec()}
	a.line("VDUP %s, V%d.S4", d, m.d)
	m.inverse = a.loadEvery(inverse, d2)
	if small {
		m.inverse32 = a.vec()
		a.line("FCVTDS F%d, F%d", m.inverse, m.inverse32)
		a.line("VDUP V%d.S[0], V%d.S4", m.inverse32, m.inverse32)
	} else {
		m.magic = a.everyLane(d2, 0x4338_0000_0000_0000) // 1.5 2^52
	}
	return m
}

// remainders frees two registers of 64-bit lanes, and returns their four remainders in 32-bit lanes.
func (m *neonModulus) remainders(p []vreg) vreg {
	a := m.a
	q, r := a.vecs(2), a.vec()
	a.i("uzp1", s4, r, p[0], p[1])
	a.each("scvtf", d2, p, func(k int) []any { return []any{p[k]} })
	if m.small {
		a.each("fmul", d2, p, func(k int) []any { return []any{p[k], m.inverse} })
		a.each("fcvtns", d2, q, func(k int) []any { return []any{p[k]} })
	} else {
		a.each("orr", b16, q, func(k int) []any { return []any{m.magic, m.magic} })
		a.each("fmla", d2, q, func(k int) []any { return []any{p[k], m.inverse} })
	}
	t := q[0]
	a.i("uzp1", s4, t, q[0], q[1])
	a.i("mls", s4, r, t, m.d)
	if m.small {
		a.i("scvtf", s4, t, r)
		a.i("fmul", s4, t, t, m.inverse32)
		a.i("fcvtns", s4, t, t)
		a.i("mls", s4, r, t, m.d)
	}
	a.i("add", s4, t, r, m.d)
	a.i("umin", s4, r, r, t) // r + d is the lesser one, as numbers without a sign, where r is negative
	a.free(p...)
	a.free(q...)
	return r
}

// storeWidened stores the four 32-bit lanes of a register as 64-bit words, offset bytes behind R0. It changes the
// register.
func (a *arm64File) storeWidened(r vreg, offset int) {
	up := a.vec()
	a.i("ushll", s4, up, r, 0)
	a.i("ushll", s2, r, r, 0)
	a.line("FSTPQ (F%d, F%d), %d(R0)", r, up, offset)
	a.free(up)
}
