package parted

import "errors"

type Value int

const largest = 10

var ErrTooLarge = errors.New("too large")

func Double(v []Value) {
	for i := range v {
		v[i] <<= 1
	}
}
