package image

import (
	"encoding/binary"
	"math"

	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/program"
)

// tablesVector is a known answer for the operators with tables: Parquet pages of two integers each. Kathmandu's clocks
// have been 5:45 hours ahead of UTC since 1986, and 5:30 before.
func tablesVector() Vector {
	const rows = 2
	cases := []struct {
		name string
		op   program.Op
		in   [rows]int64
		out  [rows]int64
	}{
		{"hour", &getlocalhour.Op{Starts: []int64{math.MinInt64, 504901800}, Offsets: []int64{19800, 20700}},
			[rows]int64{1700000000, -1}, [rows]int64{3, 5}},
		{"pairs", &mapid.Op{Keys: []int64{-5, 10}, Values: []int64{2, 1}, Default: 9}, [rows]int64{-5, 11},
			[rows]int64{2, 9}},
		{"list", &mapid.Op{Values: []int64{10, 11, 12, 13}}, [rows]int64{3, -1}, [rows]int64{13, 0}},
	}
	var columns []pageColumn
	var ids []int64
	for i, c := range cases {
		var values []byte
		for _, x := range c.in {
			values = binary.LittleEndian.AppendUint64(values, uint64(x))
		}
		columns = append(columns, pageColumn{c.name, program.Int64, program.ChunkType{Physical: 2}, values,
			program.Sink{To: program.ToSparse, Index: uint32(i), Ops: []program.Op{c.op}}})
		ids = append(ids, c.out[:]...)
	}
	return pagesVector("tables", rows, columns, nil, ids)
}
