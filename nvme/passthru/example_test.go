package passthru_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/passthru"
)

// Reads the first block of every drive that the kernel has.
func Example() {
	all, err := passthru.Controllers(passthru.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range all {
		conn, err := passthru.Open("/dev/"+d.Name, passthru.Options{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		for _, ns := range d.Namespaces {
			if ns.BlockSize == 0 {
				continue
			}
			block := make([]byte, ns.BlockSize)
			read := nvme.Read(ns.ID, 0, 1, uint32(ns.BlockSize))
			_, err := conn.IO(context.Background(), &read, block)
			fmt.Println(d.Name, ns.ID, conn.Carrier(), err)
		}
		if err := conn.Close(); err != nil {
			fmt.Println(err)
		}
	}
}
