package hashbytes

import "github.com/millrace/millrace/fpga/rowvalue"

// Answers are known answers of the operator. The ids are those that the functions' authors and users publish: xxHash,
// Spark, and BigQuery and Guava.
func Answers() []rowvalue.Answer {
	return []rowvalue.Answer{
		{Op: Op{Function: XXH3}, Inputs: []any{[]byte{}}, Want: int64(0x2d06800538d394c2)},
		{Op: Op{Function: XXH3}, Inputs: []any{[]byte("abc")}, Want: int64(0x78af5f94892f3950)},
		{Op: Op{Function: Murmur3}, Inputs: []any{[]byte("hello")}, Want: int64(-1008564952)},
		{Op: Op{Function: Murmur3}, Inputs: []any{[]byte("Spark")}, Want: int64(228093765)},
		{Op: Op{Function: FarmHash}, Inputs: []any{[]byte("1footrue")}, Want: int64(-1541654101129638711)},
		{Op: Op{Function: FarmHash}, Inputs: []any{[]byte("test")}, Want: int64(8581389452482819506)},
		{Op: Op{Function: Murmur3}, Inputs: []any{[]byte{}}, Want: int64(142593372)},
		{Op: Op{Function: FarmHash}, Inputs: []any{[]byte{}}, Want: -int64(0x651e95c4d06fbfb1)},
		{Op: Op{}, Inputs: []any{nil}, Want: nil},
	}
}
