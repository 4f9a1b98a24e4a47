package kernel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/operator/listlength"
)

// BenchmarkCombine counts the elements of 2048 lists.
func BenchmarkCombine(b *testing.B) {
	c, err := CompileCombiner(listlength.Op{}, nil)
	require.NoError(b, err)
	in := block.Values{List: true, Lengths: make([]int32, 2048)}
	var to block.GraphValue
	for b.Loop() {
		if err := c.Combine(&to, []*block.Values{&in}, len(in.Lengths)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(in.Lengths)), "ns/list")
}
