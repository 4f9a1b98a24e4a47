//go:build !amd64 || purego

package snappy

// canWalk is false: there are no kernels.
func canWalk() bool { return false }

func elementSizes512(sizes *[2][span]byte, src *byte, n int) {}

func walk(dst *byte, at, room int, src *byte, from, n int, sizes *[2][span]byte, tags *uint32) (to, element int) {
	return at, from
}
