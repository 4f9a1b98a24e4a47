package fillnull

// fillGeneric is the path of plain Go, and the oracle of the others. valid is as long as v.
func fillGeneric[T uint32 | uint64](v []T, valid []byte, fill T) {
	for i, ok := range valid {
		if ok == 0 {
			v[i] = fill
		}
	}
}
