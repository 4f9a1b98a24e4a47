package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: hashbytes.Op{Function: hashbytes.XXH3}, Inputs: []any{[]byte{}}, Want: int64(0x2d06800538d394c2)},
		{Op: hashbytes.Op{Function: hashbytes.Murmur3}, Inputs: []any{[]byte{}}, Want: int64(142593372)},
		{Op: hashbytes.Op{Function: hashbytes.FarmHash}, Inputs: []any{[]byte{}}, Want: -int64(0x651e95c4d06fbfb1)},
		{Op: hashbytes.Op{}, Inputs: []any{nil}, Want: nil},
	})
}
