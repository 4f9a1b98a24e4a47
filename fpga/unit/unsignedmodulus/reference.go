package unsignedmodulus

// Reference returns the remainder of one id. modulus must be above 0.
func Reference(id, modulus int64) int64 { return int64(uint64(id) % uint64(modulus)) }
