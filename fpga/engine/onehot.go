package engine

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
)

// findClasses replaces values by the numbers of their classes, -1 for none. storeOneHot writes the classes.
func (b *buffers) findClasses(s *step, v *chainValues) {
	dst := resize(&b.classes, v.count)
	if v.kind == program.Int64 {
		s.classes.IDs(dst, v.int64s[:v.count])
	} else {
		s.classes.Ranges(dst, v.float32s[:v.count])
	}
	if v.valid != nil {
		for i, ok := range v.valid[:v.count] {
			if ok == 0 {
				dst[i] = -1
			}
		}
	}
	v.kind, v.int64s, v.valid, v.ownsValues = program.Int64, dst, nil, true
}

// storeOneHot writes classes as rows row, row+1, ... of neighbouring columns of dense, from a column on.
func (o *tensors) storeOneHot(column, row uint64, v *chainValues, count uint32) {
	width := o.denseBytes * uint64(count)
	for i, class := range v.int64s[:v.count] {
		at := o.denseBytes * ((row+uint64(i))*o.width + column)
		columns := o.dense[at:][:width]
		clear(columns)
		switch {
		case class < 0:
		case o.denseBytes == 2:
			littleEndian.PutUint16(columns[2*class:], bfloat16.Round(1))
		default:
			littleEndian.PutUint32(columns[4*class:], math.Float32bits(1))
		}
	}
	o.bytesWritten += width * uint64(v.count)
}
