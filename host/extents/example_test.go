package extents_test

import (
	"fmt"

	"github.com/millrace/millrace/host/extents"
)

// Finds the drive that a file lies on, and where.
func ExampleFind() {
	m, err := extents.Find("/data/part-0.parquet", extents.Options{})
	if err != nil {
		fmt.Println(err) // copy the file, or put it on a volume
		return
	}
	fmt.Printf("nvme:/dev/%s, namespace %d: %d extents\n", m.Disk.Control, m.Disk.NSID, len(m.Extents))
	// ... have the drive read them, then:
	if err := m.Check(); err != nil {
		fmt.Println("begin again:", err)
	}
}
