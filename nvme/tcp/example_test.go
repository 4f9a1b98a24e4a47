package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
)

// ram is flash that forgets.
type ram []byte

func (r ram) ReadAt(p []byte, off int64) (int, error)  { return copy(p, r[off:]), nil }
func (r ram) WriteAt(p []byte, off int64) (int, error) { return copy(r[off:], p), nil }
func (r ram) Sync() error                              { return nil }
func (r ram) Size() int64                              { return int64(len(r)) }
func (r ram) Discard(off, n int64) error               { clear(r[off : off+n]); return nil }
func (r ram) ReadOnly() bool                           { return false }

// A drive is served on loopback, and a host writes a block and reads it back.
func Example() {
	drive, err := controller.New(controller.Options{Flash: make(ram, 1<<20), NQN: "nqn.2024-01.io.millrace:ram"})
	check(err)
	target, err := tcp.NewTarget(tcp.TargetOptions{})
	check(err)
	check(target.Add(drive))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	served := make(chan error, 1)
	go func() { served <- target.Serve(l) }()

	ctx := context.Background()
	host, err := tcp.Dial(ctx, tcp.DialOptions{Address: l.Addr().String(), Subsystem: drive.NQN(), HeaderDigest: true,
		DataDigest: true})
	check(err)
	block := make([]byte, 512)
	copy(block, "hello")
	cmd := nvme.Write(1, 7, 1, 512, false)
	_, err = host.IO(ctx, &cmd, block)
	check(err)
	got := make([]byte, 512)
	cmd = nvme.Read(1, 7, 1, 512)
	_, err = host.IO(ctx, &cmd, got)
	check(err)
	fmt.Printf("%s\n", got[:5])

	cmd = nvme.Read(1, 1<<40, 1, 512)
	_, err = host.IO(ctx, &cmd, got)
	fmt.Println(errors.Is(err, nvme.LBAOutOfRange))

	check(host.Close())
	check(target.Shutdown(ctx))
	fmt.Println(<-served)
	// Output:
	// hello
	// true
	// the target is closed
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
