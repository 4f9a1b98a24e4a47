package checksum

// Reference is Page by the definition.
func Reference(b []byte) uint32 {
	const reversed = 0xedb88320 // the polynomial, the coefficient of x^31 in bit 0
	r := ^uint32(0)
	for _, c := range b {
		r ^= uint32(c)
		for range 8 {
			lowest := r & 1
			r = r>>1 ^ reversed&-lowest
		}
	}
	return ^r
}
