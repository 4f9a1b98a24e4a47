package tcp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
)

func benchHost(b *testing.B, o DialOptions) *Host {
	b.Helper()
	sub, err := controller.New(controller.Options{Flash: newFlash(64 << 20), NQN: testNQN})
	require.NoError(b, err)
	target, err := NewTarget(TargetOptions{ConnectionMemory: 64 << 20})
	require.NoError(b, err)
	require.NoError(b, target.Add(sub))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	go func() { _ = target.Serve(l) }()
	o.Address, o.Subsystem, o.HostNQN = l.Addr().String(), testNQN, hostNQN
	h, err := Dial(context.Background(), o)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, h.Close())
		require.NoError(b, target.Close())
	})
	return h
}

func BenchmarkRead(b *testing.B) {
	for _, digest := range []bool{false, true} {
		for _, size := range []int{4 << 10, 1 << 20} {
			for _, depth := range []int{1, 32} {
				b.Run(fmt.Sprintf("size=%d/depth=%d/digest=%t", size, depth, digest), func(b *testing.B) {
					h := benchHost(b, DialOptions{DataDigest: digest})
					b.SetBytes(int64(size))
					b.ReportAllocs()
					var next atomic.Int64
					var wg sync.WaitGroup
					b.ResetTimer()
					for w := range depth {
						wg.Add(1)
						go func() {
							defer wg.Done()
							buf := make([]byte, size)
							for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
								cmd := nvme.Read(1, uint64(i*7919+int64(w))%((64<<20-1<<20)/512), uint32(size/512), 512)
								if _, err := h.IO(context.Background(), &cmd, buf); err != nil {
									b.Error(err)
									return
								}
							}
						}()
					}
					wg.Wait()
				})
			}
		}
	}
}
