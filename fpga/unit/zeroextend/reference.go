package zeroextend

// Reference returns id modulo 2^32 as a number in [0, 2^32).
func Reference(id int64) int64 {
	m := id % (1 << 32)
	if m < 0 {
		m += 1 << 32
	}
	return m
}
