//go:build !purego

package snappy

import "github.com/millrace/millrace/fpga/unit/internal/simd"

// canWalk reports whether the processor has the kernels' instructions.
func canWalk() bool { return simd.VBMI() }
