//go:build !amd64 || purego

package rowmajor

import "github.com/millrace/millrace/fpga/unit/internal/simd"

var (
	writeRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeGeneric}

	writeBFloatRows = simd.Paths[func(dst []byte, stride int, t *Tile, columns, from, rows int)]{writeBFloatGeneric}
)
