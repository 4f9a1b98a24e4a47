//go:build unix

package main

import (
	"bufio"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
)

// spawn runs millrace in a process of its own and returns it and its first line.
func spawn(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, line
}

// TestKill kills the target at random moments under write load. It checks that flushed blocks are there when the
// target is back, that no block is torn, and that the waiting host goes on with the new target.
func TestKill(t *testing.T) {
	const (
		nqn    = "nqn.2024-01.io.millrace:kill"
		blocks = 64
		lba    = 4096
		rounds = 4
	)
	args := []string{
		"drive", "serve", "--create", "--flash", t.TempDir() + "/d", "--size", "1MiB", "--lba", "4096", "--slm", "1MiB",
		"--nqn", nqn, "--progress", "none", "--listen",
	}
	cmd, line := spawn(t, append(args, "127.0.0.1:0")...)
	address := strings.TrimPrefix(strings.Fields(line)[1], "tcp://")
	address, _, _ = strings.Cut(address, "/")
	h, err := tcp.Dial(t.Context(), tcp.DialOptions{Address: address, Subsystem: nqn, FirstDelay: 5 * time.Millisecond,
		LongestDelay: 50 * time.Millisecond})
	require.NoError(t, err)
	defer h.Close()

	// fill makes a block all of one number.
	fill := func(b []byte, n uint64) {
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], n)
		}
	}
	ctx := t.Context()
	var flushed [blocks]uint64 // the number that a block had when a flush that completed began
	next := uint64(1)
	var written atomic.Uint64
	for range rounds {
		stop, stopped := make(chan struct{}), sync.WaitGroup{}
		stopped.Add(1)
		go func() {
			defer stopped.Done()
			b := make([]byte, lba)
			wrote := flushed
			for ; ; next++ {
				select {
				case <-stop:
					return
				default:
				}
				at := rand.IntN(blocks)
				fill(b, next)
				cmd := nvme.Write(1, uint64(at), 1, lba, false)
				if _, err := h.IO(ctx, &cmd, b); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				wrote[at] = next
				written.Add(1)
				if next%16 == 0 {
					flush := nvme.New(nvme.NVMFlush, 1)
					if _, err := h.IO(ctx, &flush, nil); err != nil {
						t.Errorf("flush: %v", err)
						return
					}
					flushed = wrote
				}
			}
		}()
		// The kill may come at any moment behind a flush, and the same rule judges blocks that are written afterwards.
		before := written.Load()
		require.Eventually(t, func() bool { return written.Load() > before+16 }, time.Minute, time.Millisecond)
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		cmd, _ = spawn(t, append(args, address)...)
		time.Sleep(10 * time.Millisecond)
		close(stop)
		stopped.Wait()
		b := make([]byte, lba)
		for at := range uint64(blocks) {
			read := nvme.Read(1, at, 1, lba)
			_, err := h.IO(ctx, &read, b)
			require.NoError(t, err)
			n := binary.LittleEndian.Uint64(b)
			for i := 0; i < lba; i += 8 {
				require.Equal(t, n, binary.LittleEndian.Uint64(b[i:]), "block %d is torn at byte %d", at, i)
			}
			require.GreaterOrEqual(t, n, flushed[at], "block %d lost what was flushed", at)
		}
	}
	require.GreaterOrEqual(t, h.Stats().Reconnects, uint64(rounds))
	require.Greater(t, next, uint64(16*rounds))
}
