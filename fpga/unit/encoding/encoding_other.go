//go:build (!amd64 && !arm64) || purego

package encoding

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	unpack32       = simd.Plain(unpack32Generic)
	unpack64       = simd.Plain(unpack64Generic)
	gather64       = simd.Plain(gatherGeneric[uint64])
	gather32       = simd.Plain(gatherGeneric[uint32])
	gatherSigned   = simd.Plain(widenGeneric[int32])
	gatherUnsigned = simd.Plain(widenGeneric[uint32])
	sum            = simd.Plain(sumGeneric)
	join4          = simd.Plain(join4Generic)
	join8          = simd.Plain(join8Generic)
	spread64       = simd.Plain(spreadGeneric[uint64])
	spread32       = simd.Plain(spreadGeneric[uint32])
)
