//go:build !amd64 || purego

package snappy

// kernelsOfLevel returns noKernels: the methods below are never called.
func kernelsOfLevel() kernels { return noKernels }

func (k kernels) elementSizes(*[2][span]byte, *byte, int) {}

func (k kernels) walk(_ []byte, at int, _ []byte, from, _ int, _ *[2][span]byte) (to, element int) {
	return at, from
}
