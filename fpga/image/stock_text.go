package image

import (
	"encoding/binary"

	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/program"
)

// textVector is a known answer for hash_bytes: Parquet pages of two strings, one for each hash function. The ids are
// those that the functions' authors and users publish: xxHash, Spark, and BigQuery and Guava.
func textVector() Vector {
	const rows = 2
	xxh3 := []uint64{0x2d06800538d394c2, 0x78af5f94892f3950}
	answers := []struct {
		function hashbytes.Function
		strings  [rows]string
		ids      [rows]int64
	}{
		{hashbytes.XXH3, [rows]string{"", "abc"}, [rows]int64{int64(xxh3[0]), int64(xxh3[1])}},
		{hashbytes.Murmur3, [rows]string{"hello", "Spark"}, [rows]int64{-1008564952, 228093765}},
		{hashbytes.FarmHash, [rows]string{"1footrue", "test"}, [rows]int64{-1541654101129638711, 8581389452482819506}},
	}
	var columns []pageColumn
	var ids []int64
	for i, a := range answers {
		var values []byte
		for _, s := range a.strings {
			values = append(binary.LittleEndian.AppendUint32(values, uint32(len(s))), s...)
		}
		columns = append(columns, pageColumn{a.function.String(), program.Bytes, program.ChunkType{Physical: 6}, values,
			program.Sink{To: program.ToSparse, Index: uint32(i),
				Ops: []program.Op{hashbytes.Op{Function: a.function}}}})
		ids = append(ids, a.ids[:]...)
	}
	return pagesVector("categories", rows, columns, nil, ids)
}
