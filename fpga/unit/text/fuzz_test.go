package text_test

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
	"github.com/millrace/millrace/fpga/unit/text"
)

// FuzzDecode wants the rows of the reference from any bytes, under any policy, at any split, with and without vector
// kernels, which take only lines that others follow.
func FuzzDecode(f *testing.F) {
	for _, l := range lines {
		f.Add([]byte(l+tail), uint8(1), uint16(len(l)/2))
		f.Add([]byte(lines["plain"]+l), uint8(5), uint16(90))
	}
	f.Fuzz(func(t *testing.T, data []byte, mode uint8, split uint16) {
		o := text.Options{Policy: text.Policy(mode % 3), LabelAbsent: mode&4 != 0}
		n := 1 + int(mode>>3)
		cuts := []int{}
		if cut := int(split); cut < len(data) && o.Policy != text.Fail {
			cuts = append(cuts, cut)
		}
		for _, l := range simd.Levels() {
			restore := simd.Force(l)
			equalsReference(t, data, o, n, cuts...)
			restore()
		}
		if !o.LabelAbsent {
			equalsReference(t, append(slices.Clip(data), tail[:3*len(tail)/8]...), o, n+3)
		}
	})
}
