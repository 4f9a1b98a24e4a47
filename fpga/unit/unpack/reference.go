package unpack

import "math"

// Reference returns the numbers of one value; ok is false if the value is not an array of float32 numbers.
func Reference(value []byte) (numbers []float32, ok bool) {
	if len(value)%4 != 0 || len(value) >= 6 && string(value[:6]) == "\x93NUMPY" {
		return nil, false
	}
	for i := 0; i < len(value); i += 4 {
		bits := uint32(value[i]) | uint32(value[i+1])<<8 | uint32(value[i+2])<<16 | uint32(value[i+3])<<24
		numbers = append(numbers, math.Float32frombits(bits))
	}
	return numbers, true
}
