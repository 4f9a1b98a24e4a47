package proving

// MalformedColumn is a column of two values over four bytes whose offsets or validity are not well formed.
type MalformedColumn struct {
	Offsets []uint32
	Valid   []byte
}

// MalformedColumns lists the ways in which a column of two values over four bytes can be malformed, by name.
func MalformedColumns() map[string]MalformedColumn {
	return map[string]MalformedColumn{
		"no offsets":      {nil, nil},
		"one too few":     {[]uint32{0, 1}, nil},
		"one too many":    {[]uint32{0, 1, 2, 3}, nil},
		"decreasing":      {[]uint32{0, 2, 1}, nil},
		"past the bytes":  {[]uint32{0, 2, 5}, nil},
		"far past":        {[]uint32{1<<32 - 2, 1<<32 - 1, 1<<32 - 1}, nil},
		"validity short":  {[]uint32{0, 1, 2}, []byte{1}},
		"begins past end": {[]uint32{9, 9, 9}, []byte{0, 0}},
	}
}
