//go:build !amd64 || purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	unpack32       = simd.Paths[func(dst []uint32, src []byte, bit int, width uint)]{unpack32Generic}
	unpack64       = simd.Paths[func(dst []int64, src []byte, bit int, width uint)]{unpack64Generic}
	gather64       = simd.Paths[func(dst, dict []uint64, idx []uint32) int]{gatherGeneric[uint64]}
	gather32       = simd.Paths[func(dst, dict []uint32, idx []uint32) int]{gatherGeneric[uint32]}
	gatherSigned   = simd.Paths[func(dst []int64, dict []int32, idx []uint32) int]{widenGeneric[int32]}
	gatherUnsigned = simd.Paths[func(dst []int64, dict []uint32, idx []uint32) int]{widenGeneric[uint32]}
	sum            = simd.Paths[func(v []int64, least, last int64)]{sumGeneric}
	join4          = simd.Paths[func(dst []uint32, src []byte, stride int)]{join4Generic}
	join8          = simd.Paths[func(dst []uint64, src []byte, stride int)]{join8Generic}
	spread64       = simd.Paths[func(v []uint64, valid []byte, there int)]{spreadGeneric[uint64]}
	spread32       = simd.Paths[func(v []uint32, valid []byte, there int)]{spreadGeneric[uint32]}
)
