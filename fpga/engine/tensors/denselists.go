package tensors

import (
	"math"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
)

// storeDenseLists writes lists as rows row, row+1, ... of dense, beginning at the place's column. A list of the wrong
// length is an error, unless it is shorter and the place pads lists.
func (o *Output) storeDenseLists(s *Place, row uint64, v *block.Values) error {
	column, want := uint64(s.Index), s.Length
	refused := s.findRefused(v.Float32s[:v.Count])
	from := 0
	for i, length := range v.Lengths {
		values := v.Float32s[from : from+int(length)]
		if from += int(length); refused >= 0 && refused < from {
			return s.refusedError(row+uint64(i), v.Float32s[refused])
		}
		if uint32(length) != want.Length && (!want.Pads || uint32(length) > want.Length) {
			return failure.Data("row %d of the mini-batch has a list of length %d, want %d (a null list, or one that "+
				"holds a null, has length 0)", row+uint64(i), length, want.Length)
		}
		at := o.denseBytes * ((row+uint64(i))*o.width + column)
		dst := o.dense[at : at+o.denseBytes*uint64(want.Length)]
		if o.denseBytes == 2 {
			scatterBFloat16(dst, 2, values)
		} else {
			scatter(dst, 4, values)
		}
		for pad := uint64(length); pad < uint64(want.Length); pad++ {
			if o.denseBytes == 2 {
				littleEndian.PutUint16(dst[2*pad:], bfloat16.Round(want.Pad))
			} else {
				littleEndian.PutUint32(dst[4*pad:], math.Float32bits(want.Pad))
			}
		}
	}
	o.BytesWritten += o.denseBytes * uint64(want.Length) * uint64(len(v.Lengths))
	return nil
}
