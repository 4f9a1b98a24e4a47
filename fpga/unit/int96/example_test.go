package int96_test

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/int96"
)

func ExampleToTime() {
	data := binary.LittleEndian.AppendUint64(nil, 3_600_000_000_000) // one o'clock
	data = binary.LittleEndian.AppendUint32(data, 2440589)           // on 1970-01-02
	seconds := make([]int64, 1)
	err := int96.ToTime(seconds, []uint32{0, 12}, data, nil, int96.Seconds)
	fmt.Println(seconds, err)
	// Output: [90000] <nil>
}
