//go:build !amd64 || purego

package sigridhash

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var hash = simd.Paths[func(h *Hasher, dst, src []int64)]{hashGeneric}
