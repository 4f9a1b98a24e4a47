package main

import "fmt"

// neonEncodings writes the kernels of Parquet's encodings.
func neonEncodings(a *arm64File) {
	neonUnpack(a, "unpackNarrowNEON", "uint32", 25, 4)
	neonUnpack(a, "unpackWideNEON", "uint32", 32, 8)
	neonUnpack(a, "unpackWidestNEON", "int64", 57, 8)
	neonGather(a, "gather64NEON", "uint64", "uint64", "MOVD")
	neonGather(a, "gather32NEON", "uint32", "uint32", "MOVWU")
	neonGather(a, "gatherSignedNEON", "int64", "int32", "MOVW")
	neonGather(a, "gatherUnsignedNEON", "int64", "uint32", "MOVWU")
	neonJoin(a, 4)
	neonJoin(a, 8)
}

// neonUnpack writes a kernel that unpacks eight values at a time. Each register gets the 16 bytes in which its values
// begin; a table lookup puts the bytes of each value, from the one that it begins in, into its lane, and a shift and a
// mask do the rest. Eight values take whole bytes, so that the lookups and shifts are the same in every turn.
func neonUnpack(a *arm64File, name, to string, most, lane int) {
	params := []param{{"dst", "*" + to}, {"src", "*byte"}, {"n", "int"}, {"bit", "int"}, {"width", "int"},
		{"have", "int"}}
	a.function(name, fmt.Sprintf("%s unpacks the first n/8*8 of n values of 1 to %d bits, from bit number bit (0 to "+
		"7) of the have bytes at src on. It ends early if too few bytes lie behind them. It returns the number of "+
		"values that it unpacked.", name, most), params, "done")
	for i, p := range params {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	each := 16 / lane // values in a register
	control, shift := a.vecs(8/each), a.vecs(8/each)
	l, lower, ones, ramp := d2, "D", uint64(0x0101010101010101), uint64(0x0706050403020100)
	if lane == 4 {
		l, lower, ones, ramp = s4, "S", 0x01010101, 0x03020100
	}
	a.line("MOVD $0x%x, R14", ones)
	a.line("MOVD $0x%x, R15", ramp)
	a.line("MOVD R3, R6")
	for i := range 8 { // R6 is the value's first bit
		k, from := i/each, fmt.Sprintf("R%d", 8+i/each)
		if i%each == 0 {
			a.line("LSR $3, R6, %s", from)
		}
		a.line("LSR $3, R6, R7")
		a.line("SUB %s, R7", from)
		a.line("MADD R14, R15, R7, R7")
		a.line("VMOV R7, V%d.%s[%d]", control[k], lower, i%each)
		a.line("AND $7, R6, R7")
		a.line("NEG R7, R7")
		a.line("VMOV R7, V%d.%s[%d]", shift[k], lower, i%each)
		a.line("ADD R4, R6")
	}
	mask := a.vec()
	a.line("MOVD $1, R7")
	a.line("LSL R4, R7, R7")
	a.line("SUB $1, R7")
	masked := l
	if lane == 8 && to == "uint32" {
		masked = s4 // is applied to narrowed lanes
	}
	a.line("VDUP R7, V%d.%s", mask, masked.plan9)

	// R6 becomes the number of turns.
	last := 7 + len(control) // the register that has where the last load's bytes begin
	a.line("MOVD $0, R6")
	a.line("SUB R%d, R5", last)
	a.line("SUBS $16, R5")
	a.line("BMI end")
	a.line("UDIV R4, R5, R6")
	a.line("ADD $1, R6")
	a.line("LSR $3, R2, R7")
	a.line("CMP R7, R6")
	a.line("CSEL LT, R6, R7, R6")
	a.line("CBZ R6, end")
	for k := range control {
		a.line("ADD R1, R%d", 8+k)
	}
	a.line("MOVD R6, R7")
	a.label("loop")
	xs := a.vecs(len(control))
	for k, x := range xs {
		a.line("VLD1.P (R%d)(R4), [V%d.B16]", 8+k, x)
	}
	for k, x := range xs {
		a.line("VTBL V%d.B16, [V%d.B16], V%d.B16", control[k], x, x)
	}
	a.each("ushl", l, xs, func(k int) []any { return []any{xs[k], shift[k]} })
	if lane == 8 && to == "uint32" {
		a.i("uzp1", s4, xs[0], xs[0], xs[1])
		a.i("uzp1", s4, xs[1], xs[2], xs[3])
		xs = xs[:2]
	}
	a.each("and", b16, xs, func(k int) []any { return []any{xs[k], mask} })
	for k := 0; k < len(xs); k += 2 {
		a.line("FSTPQ.P (F%d, F%d), 32(R0)", xs[k], xs[k+1])
	}
	a.line("SUBS $1, R7")
	a.line("BNE loop")
	a.label("end")
	a.line("LSL $3, R6")
	a.result("done", "R6")
	a.line("RET")
}

// neonGather writes a kernel that looks up eight values at a time. NEON gathers nothing: the lookups are single loads,
// and vector registers only find the greatest of eight indices.
func neonGather(a *arm64File, name, to, from, load string) {
	params := []param{{"dst", "*" + to}, {"dict", "*" + from}, {"idx", "*uint32"}, {"n", "int"}, {"size", "int"}}
	a.function(name, name+" sets dst[i] to dict[idx[i]] for n indices, 8 at a time. It ends when fewer than 8 are "+
		"left, or when one of the next 8 is not below size. It returns the number of elements that it set.", params,
		"done")
	for i, p := range params {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	store := map[int]string{4: "STPW", 8: "STP"}[sizeOf(to)]
	scale := map[int]int{4: 2, 8: 3}[sizeOf(from)]
	a.line("MOVD R3, R5")
	a.label("loop")
	a.line("CMP $8, R3")
	a.line("BLT end")
	low, up := a.vec(), a.vec()
	a.line("FLDPQ (R2), (F%d, F%d)", low, up)
	a.i("umax", s4, low, low, up)
	a.i("umaxv", s4, low, low)
	a.line("FMOVS F%d, R6", low)
	a.line("CMP R4, R6")
	a.line("BHS end")
	for i := 0; i < 8; i += 2 {
		a.line("LDPW %d(R2), (R%d, R%d)", 4*i, 8+i, 9+i)
	}
	for i := range 8 {
		a.line("%s (R1)(R%d<<%d), R%d", load, 8+i, scale, 8+i)
	}
	size := sizeOf(to)
	for i := 0; i < 8; i += 2 {
		a.line("%s (R%d, R%d), %d(R0)", store, 8+i, 9+i, size*i)
	}
	a.line("ADD $32, R2")
	a.line("ADD $%d, R0", 8*size)
	a.line("SUB $8, R3")
	a.line("B loop")
	a.label("end")
	a.line("SUB R3, R5")
	a.result("done", "R5")
	a.line("RET")
}

// neonJoin writes a kernel that puts together sixteen values at a time, whose bytes lie in streams: bytes of two
// streams are interleaved, then pairs of these, and so on.
func neonJoin(a *arm64File, size int) {
	name, kind := fmt.Sprintf("join%dNEON", size), fmt.Sprintf("*uint%d", 8*size)
	params := []param{{"dst", kind}, {"src", "*byte"}, {"n", "int"}, {"stride", "int"}}
	a.function(name, fmt.Sprintf("%s puts together n values of %d bytes, which lie stride bytes apart. n is a "+
		"multiple of 16 above 0.", name, size), params, "")
	for i, p := range params {
		a.load(p, fmt.Sprintf("R%d", i))
	}
	streams := []int{1, 4, 5, 6, 7, 8, 9, 10}[:size]
	for k := 1; k < size; k++ {
		a.line("ADD R3, R%d, R%d", streams[k-1], streams[k])
	}
	a.label("loop")
	xs := a.vecs(size)
	for k, x := range xs {
		a.line("VLD1.P 16(R%d), [V%d.B16]", streams[k], x)
	}
	// Of xs, each holds the next bytes of as many streams as width says: first those of the lower streams.
	for width, ls := 1, []arrangement{b16, h8, s4}; width < size; width, ls = 2*width, ls[1:] {
		per := width // registers that hold the sixteen values' bytes of width streams
		var joined []vreg
		for at := 0; at < size; at += 2 * per {
			for i := range per {
				low, up := a.vec(), a.vec()
				a.i("zip1", ls[0], low, xs[at+i], xs[at+per+i])
				a.i("zip2", ls[0], up, xs[at+i], xs[at+per+i])
				joined = append(joined, low, up)
			}
		}
		a.free(xs...)
		xs = joined
	}
	for k := 0; k < size; k += 2 {
		a.line("FSTPQ.P (F%d, F%d), 32(R0)", xs[k], xs[k+1])
	}
	a.line("SUBS $16, R2")
	a.line("BNE loop")
	a.line("RET")
}
