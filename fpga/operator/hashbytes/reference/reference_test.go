package reference

import (
	"testing"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue/rowvaluetest"
)

func TestKnownAnswers(t *testing.T) {
	rowvaluetest.Check(t, New, []rowvaluetest.Answer{
		{Op: program.HashBytes{Function: program.HashXXH3}, Inputs: []any{[]byte{}}, Want: int64(0x2d06800538d394c2)},
		{Op: program.HashBytes{Function: program.HashMurmur3}, Inputs: []any{[]byte{}}, Want: int64(142593372)},
		{Op: program.HashBytes{Function: program.HashFarmHash}, Inputs: []any{[]byte{}}, Want: -int64(0x651e95c4d06fbfb1)},
		{Op: program.HashBytes{}, Inputs: []any{nil}, Want: nil},
	})
}
