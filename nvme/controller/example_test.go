package controller_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

// ram is the smallest flash there can be.
type ram []byte

func (r ram) ReadAt(p []byte, off int64) (int, error)  { return copy(p, r[off:]), nil }
func (r ram) WriteAt(p []byte, off int64) (int, error) { return copy(r[off:], p), nil }
func (r ram) Sync() error                              { return nil }
func (r ram) Size() int64                              { return int64(len(r)) }
func (r ram) Discard(off, n int64) error               { clear(r[off : off+n]); return nil }
func (r ram) ReadOnly() bool                           { return false }

// A host in the same process writes a block and reads it back.
func Example() {
	drive, err := controller.New(controller.Options{Flash: make(ram, 1<<20)})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := controller.Local(drive, controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	block := make([]byte, 512)
	copy(block, "rows")
	write := nvme.Write(1, 7, 1, 512, false)
	if _, err := conn.IO(context.Background(), &write, block); err != nil {
		fmt.Println(err)
	}
	clear(block)
	read := nvme.Read(1, 7, 1, 512)
	if _, err := conn.IO(context.Background(), &read, block); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s\n", block[:4])
	past := nvme.Read(1, 2048, 1, 512)
	_, err = conn.IO(context.Background(), &past, block)
	fmt.Println(err)
	// Output:
	// rows
	// Read on namespace 1: nvme status: address out of range (0/80h, do not retry)
}
