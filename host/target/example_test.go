package target_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/discovery"
)

func Example() {
	served, err := target.Start(target.Options{
		Drive:  csd.Options{Size: 1 << 20, SLMBytes: 1 << 20, NQN: "nqn.2024-01.io.millrace:example"},
		Listen: "127.0.0.1:0",
	})
	if err != nil {
		panic(err)
	}
	defer served.Close()
	entries, err := discovery.Discover(context.Background(), tcp.DialOptions{Address: served.Address()})
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		fmt.Println(e.Type, e.NQN)
	}
	// Output:
	// discovery nqn.2014-08.org.nvmexpress.discovery
	// nvm nqn.2024-01.io.millrace:example
}
