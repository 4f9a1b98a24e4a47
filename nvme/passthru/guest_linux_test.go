package passthru

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// inGuest is set for the tests below that run in a guest, on a kernel with an NVMe driver.
const inGuest = "MILLRACE_IN_GUEST"

// badSector is the sector of 512 bytes whose reading QEMU fails.
const badSector = 2048

// TestGuestQEMU boots kernels with QEMU's NVMe controller and runs this package's TestInGuest there. Two namespaces,
// the first with a sector that cannot be read.
func TestGuestQEMU(t *testing.T) {
	kernels := guest.Kernels(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "passthru.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	program, err := os.ReadFile(binary)
	require.NoError(t, err)
	config := filepath.Join(dir, "blkdebug")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"[inject-error]\nevent = \"read_aio\"\nerrno = \"5\"\nsector = \"%d\"\n", badSector), 0o644))
	for i := range 2 {
		disk := filepath.Join(dir, fmt.Sprintf("disk%d", i))
		require.NoError(t, os.WriteFile(disk, nil, 0o644))
		require.NoError(t, os.Truncate(disk, 16<<20))
	}
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Modules: []string{"nvme"}, Files: map[string][]byte{"/opt/passthru.test": program},
				Env: map[string]string{inGuest: "qemu"},
				QEMU: []string{
					"-drive", "if=none,id=bad,format=raw,file=blkdebug:" + config + ":" + filepath.Join(dir, "disk0"),
					"-drive", "if=none,id=good,format=raw,file=" + filepath.Join(dir, "disk1"),
					"-device", "nvme,id=nvme0,serial=QEMU0001",
					"-device", "nvme-ns,drive=bad,bus=nvme0,nsid=1", "-device",
					"nvme-ns,drive=good,bus=nvme0,nsid=3,logical_block_size=4096,physical_block_size=4096",
				},
				Script: "wait_for 20 test -e /dev/ng0n2\ncheck passthru /opt/passthru.test -test.v -test.run InGuest\n",
			})
			result.Subtests(t, "passthru")
			for _, c := range result.Checks {
				t.Log(c.Output)
			}
		})
	}
}

// guestOnly skips outside of a guest.
func guestOnly(t *testing.T) {
	if os.Getenv(inGuest) != "qemu" {
		t.Skip("runs in the guest that TestGuestQEMU boots")
	}
}

// bothWays runs a test by io_uring, which every kernel of the guests has, and by ioctl.
func bothWays(t *testing.T, test func(t *testing.T, c *Conn)) {
	guestOnly(t)
	for _, noRing := range []bool{false, true} {
		c, err := Open("/dev/nvme0", Options{NoRing: noRing})
		require.NoError(t, err)
		want := "io_uring"
		if noRing {
			want = "ioctl"
		}
		require.Equal(t, want, c.Carrier())
		t.Run(want, func(t *testing.T) { test(t, c) })
		require.NoError(t, c.Close())
	}
}

func TestInGuestControllers(t *testing.T) {
	guestOnly(t)
	all, err := Controllers(Options{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	c := all[0]
	assert.Equal(t, "QEMU NVMe Ctrl", c.Model)
	assert.Equal(t, "QEMU0001", c.Serial)
	assert.Equal(t, "pcie", c.Transport)
	assert.Equal(t, "live", c.State)
	require.Len(t, c.Namespaces, 2)
	t.Logf("%+v", c)
	assert.Equal(t, []uint32{1, 3}, []uint32{c.Namespaces[0].ID, c.Namespaces[1].ID})
	assert.Equal(t, []int{512, 4096}, []int{c.Namespaces[0].BlockSize, c.Namespaces[1].BlockSize})
	for _, ns := range c.Namespaces {
		assert.Equal(t, int64(16<<20), ns.Size)
		assert.NotEmpty(t, ns.Generic)
		assert.NotEmpty(t, ns.Block)
		assert.Positive(t, ns.Most)
	}
}

func TestInGuestAdmin(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Conn) {
		b := make([]byte, nvme.IdentifySize)
		identify := nvme.Identify(nvme.CNSController, 0, 0)
		_, err := c.Admin(t.Context(), &identify, b)
		require.NoError(t, err)
		var id nvme.IdentifyController
		require.NoError(t, id.Unmarshal(b))
		assert.Equal(t, "QEMU NVMe Ctrl", id.Model)
		page := make([]byte, nvme.SMARTLogSize)
		get := nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, nvme.SMARTLogSize)
		_, err = c.Admin(t.Context(), &get, page)
		require.NoError(t, err)
		var l nvme.SMARTLog
		require.NoError(t, l.Unmarshal(page))
		assert.Equal(t, uint16(323), l.Temperature, "QEMU's 50 degrees")
		unknown := nvme.GetLog(0x7f, nvme.AllNamespaces, 0, 512)
		_, err = c.Admin(t.Context(), &unknown, make([]byte, 512))
		var status nvme.Status
		require.ErrorAs(t, err, &status, "a status, not success")
	})
}

func TestInGuestBlocks(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Conn) {
		for nsid, block := range map[uint32]int{1: 512, 3: 4096} {
			for _, n := range []int{block, 3 * block, 64 << 10, c.MaxTransfer()} {
				for _, shift := range []int{0, 1, 4, 100} {
					n := n / block * block
					want := pattern(n, byte(n>>9)+byte(shift))
					room := make([]byte, n+shift)
					copy(room[shift:], want)
					write := nvme.Write(nsid, 3000*512/uint64(block), uint32(n/block), uint32(block), true)
					_, err := c.IO(t.Context(), &write, room[shift:])
					require.NoError(t, err, "%d bytes", n)
					clear(room)
					read := nvme.Read(nsid, 3000*512/uint64(block), uint32(n/block), uint32(block))
					_, err = c.IO(t.Context(), &read, room[shift:])
					require.NoError(t, err)
					require.True(t, bytes.Equal(want, room[shift:]), "%d bytes at %d behind a page", n, shift)
				}
			}
		}
	})
}

func TestInGuestRefusals(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Conn) {
		data := make([]byte, 512)
		for name, x := range map[string]struct {
			cmd  nvme.Command
			want nvme.Status
		}{
			"past the end":   {nvme.Read(1, 32768, 1, 512), nvme.LBAOutOfRange},
			"unknown opcode": {nvme.New(0x90, 1), nvme.InvalidOpcode},
			"bad sector":     {nvme.Read(1, badSector, 1, 512), nvme.UnrecoveredReadError},
		} {
			cpl, err := c.IO(t.Context(), &x.cmd, data[:x.cmd.DataLength()])
			require.ErrorIs(t, err, x.want, name)
			assert.True(t, errors.Is(cpl.Status(), x.want), name)
		}
		missing := nvme.Flush(2)
		_, err := c.IO(t.Context(), &missing, nil)
		assert.ErrorIs(t, err, ErrNoNamespace)
		// More than the kernel carries: it says so itself, and nothing is harmed.
		n := 8 << 20
		large := nvme.Read(1, 0, uint32(n/512), 512)
		_, err = c.IO(t.Context(), &large, make([]byte, n))
		assert.ErrorIs(t, err, unix.EINVAL)
		flush := nvme.Flush(1)
		_, err = c.IO(t.Context(), &flush, nil)
		assert.NoError(t, err)
	})
}

func TestInGuestManyAtOnce(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Conn) {
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 40 {
					lba := uint64(8 * (16*i + g))
					want := pattern(4096, byte(g)^byte(i))
					write, read := nvme.Write(3, lba/8, 1, 4096, false), nvme.Read(3, lba/8, 1, 4096)
					_, err := c.IO(t.Context(), &write, want)
					assert.NoError(t, err)
					got := make([]byte, 4096)
					_, err = c.IO(t.Context(), &read, got)
					assert.NoError(t, err)
					assert.True(t, bytes.Equal(want, got))
				}
			})
		}
		wg.Wait()
	})
}

// TestInGuestReset resets the controller under I/O: commands wait or are repeated, and none is lost.
func TestInGuestReset(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Conn) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					want := pattern(4096, byte(g)^byte(i))
					write, read := nvme.Write(3, uint64(g), 1, 4096, false), nvme.Read(3, uint64(g), 1, 4096)
					_, err := c.IO(t.Context(), &write, want)
					assert.NoError(t, err)
					got := make([]byte, 4096)
					_, err = c.IO(t.Context(), &read, got)
					assert.NoError(t, err)
					assert.True(t, bytes.Equal(want, got))
				}
			})
		}
		for range 3 {
			require.NoError(t, Reset("/dev/nvme0", Options{}))
		}
		close(stop)
		wg.Wait()
	})
}

func TestInGuestStaleNode(t *testing.T) {
	guestOnly(t)
	dir := t.TempDir()
	require.NoError(t, unix.Mknod(filepath.Join(dir, "nvme0"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	_, err := Open("/dev/nvme0", Options{Dev: dir})
	assert.ErrorContains(t, err, "it is a stale node")
}
