package reference

import (
	"github.com/millrace/millrace/fpga/unit/parted"
	"github.com/millrace/millrace/fpga/unit/several/format"
)

func Value(b []byte) int {
	v := parted.Value(format.Parse(b))
	parted.Double(nil)
	return int(v)
}
