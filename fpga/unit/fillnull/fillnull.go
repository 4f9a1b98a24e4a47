package fillnull

// Int64 sets v[i] to fill wherever valid[i] is 0. A nil valid means that nothing is null.
func Int64(v []int64, valid []byte, fill int64) { kernel(v, valid, fill) }

// Float32 sets v[i] to fill wherever valid[i] is 0; the bits of every other value are kept.
func Float32(v []float32, valid []byte, fill float32) { kernel(v, valid, fill) }

// Float64 sets v[i] to fill wherever valid[i] is 0; the bits of every other value are kept.
func Float64(v []float64, valid []byte, fill float64) { kernel(v, valid, fill) }

func kernel[T int64 | float32 | float64](v []T, valid []byte, fill T) {
	if valid == nil {
		return
	}
	valid = valid[:len(v)]
	for i, ok := range valid {
		if ok == 0 {
			v[i] = fill
		}
	}
}
