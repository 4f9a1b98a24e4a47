//go:build (!amd64 && !arm64) || purego

package sigridhash

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	hash   = simd.Plain(hashGeneric)
	hash32 = simd.Plain(hash32Generic)
)

func hash32Sum(_ *Hasher, _ []byte, _ []int64, sum uint32) (uint32, int) { return sum, 0 }
