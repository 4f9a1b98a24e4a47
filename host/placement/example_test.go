package placement_test

import (
	"fmt"

	"github.com/millrace/millrace/host/placement"
)

// Two copies of each partition lie on different nodes, and the drives finish together.
func ExampleSpread() {
	drives := []placement.Drive{
		{Ref: placement.Ref{Node: "n0", Drive: "d0"}, FreeBytes: 1 << 30, RowsPerSecond: 1000},
		{Ref: placement.Ref{Node: "n1", Drive: "d0"}, FreeBytes: 1 << 30, RowsPerSecond: 1000},
		{Ref: placement.Ref{Node: "n2", Drive: "d0"}, FreeBytes: 1 << 30, RowsPerSecond: 1000},
	}
	fresh := []placement.Partition{
		{Name: "part-0", Bytes: 1 << 20, Rows: 600, Copies: 2},
		{Name: "part-1", Bytes: 1 << 20, Rows: 300, Copies: 2},
	}
	copies, err := placement.Spread(drives, nil, fresh)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range copies {
		fmt.Println(c.Partition.Name, c.To)
	}
	// Output:
	// part-0 n0/d0
	// part-0 n1/d0
	// part-1 n2/d0
	// part-1 n0/d0
}
