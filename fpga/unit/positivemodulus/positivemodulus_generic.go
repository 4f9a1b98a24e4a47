package positivemodulus

// modGeneric is the path of plain Go, and the oracle of the others.
func modGeneric(m *Modulus, dst, src []int64) {
	if m.bits {
		for i, x := range src {
			dst[i] = x & m.mask
		}
		return
	}
	div := m.div
	for i, x := range src {
		dst[i] = div.Mod(x)
	}
}
