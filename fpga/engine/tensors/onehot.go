package tensors

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
)

// storeOneHot writes classes as rows row, row+1, ... of neighbouring columns of dense, from a column on.
func (o *Output) storeOneHot(column, row uint64, v *block.Values, count uint32) {
	width := o.denseBytes * uint64(count)
	for i, class := range v.Int64s[:v.Count] {
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
	o.BytesWritten += width * uint64(v.Count)
}
