package main

const neonCRCLanes, neonCRCStride = 8, 128 // registers that are folded side by side, and their bytes

// neonChecksum writes foldNEON.
func neonChecksum(a *arm64File) {
	params := []param{{"left", "*[16]byte"}, {"state", "uint32"}, {"p", "*byte"}, {"n", "int"}}
	a.function("foldNEON", "foldNEON sets left to a message that has the remainder of the n bytes at p, to which "+
		"state is added first. n is a multiple of 128 above 0. It takes PMULL.", params, "")
	for i, r := range []string{"R0", "R1", "R2", "R3"} {
		a.load(params[i], r)
	}
	k, first := a.vec(), a.everyLane(d2, 0)
	a.line("VMOV R1, V%d.S[0]", first)
	neonCRCFactors(a, k, 8*neonCRCStride)
	acc := a.vecs(neonCRCLanes)
	for i := 0; i < len(acc); i += 2 {
		a.line("FLDPQ %d(R2), (F%d, F%d)", 16*i, acc[i], acc[i+1])
	}
	a.i("eor", b16, acc[0], acc[0], first)
	a.line("B next")
	a.label("loop")
	next, low := a.vecs(neonCRCLanes), a.vecs(neonCRCLanes)
	for i := 0; i < len(acc); i += 2 {
		a.line("FLDPQ %d(R2), (F%d, F%d)", 16*i, next[i], next[i+1])
	}
	for i, x := range acc {
		a.crcFold(k, x, low[i], next[i])
	}
	a.label("next")
	a.line("ADD $%d, R2", neonCRCStride)
	a.line("SUBS $%d, R3", neonCRCStride)
	a.line("BNE loop")
	neonCRCFactors(a, k, 8*16)
	for i, x := range acc[:len(acc)-1] {
		a.crcFold(k, x, low[0], acc[i+1])
		acc[i+1] = x
	}
	a.line("FMOVQ F%d, (R0)", acc[len(acc)-1])
	a.line("RET")
}

// crcFold moves 128 bits of a message further by the distance of the factors k, and adds what is there. It needs a
// register for the product of the lower halves.
func (a *arm64File) crcFold(k, x, low, there vreg) {
	a.line("VPMULL V%d.D1, V%d.D1, V%d.Q1", k, x, low)
	a.line("VPMULL2 V%d.D2, V%d.D2, V%d.Q1", k, x, x)
	a.i("eor", b16, low, low, there)
	a.i("eor", b16, x, x, low)
}

// neonCRCFactors sets a register to the pair of factors that move 128 bits of a message d bits further.
func neonCRCFactors(a *arm64File, k vreg, d int) {
	low, high := crcPair(d)
	a.line("MOVD $0x%x, R4", low)
	a.line("MOVD $0x%x, R5", high)
	a.line("VMOV R4, V%d.D[0]", k)
	a.line("VMOV R5, V%d.D[1]", k)
}
