package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/passthru"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// inGuest is set for TestInGuest, on a kernel with an NVMe driver and QEMU's controller.
const inGuest = "MILLRACE_IN_GUEST"

// TestGuestWatch has kernels take the programs, and counts commands that are known.
func TestGuestWatch(t *testing.T) {
	kernels := guest.Kernels(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "telemetry.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	program, err := os.ReadFile(binary)
	require.NoError(t, err)
	disk := filepath.Join(dir, "disk")
	require.NoError(t, os.WriteFile(disk, nil, 0o644))
	require.NoError(t, os.Truncate(disk, 16<<20))
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Modules: []string{"nvme"}, Files: map[string][]byte{"/opt/telemetry.test": program},
				Env: map[string]string{inGuest: "yes"},
				QEMU: []string{"-drive", "if=none,id=disk,format=raw,file=" + disk, "-device",
					"nvme,serial=QEMU0001,drive=disk"},
				Script: "wait_for 120 test -e /dev/ng0n1\nwait_for 120 test -b /dev/nvme0n1\nsleep 2 # the kernel " +
					"looks for partitions and reads the temperature\ncheck watch /opt/telemetry.test -test.v " +
					"-test.run 'InGuest|SaysWhyNot'\n",
			})
			result.Subtests(t, "watch")
			for _, c := range result.Checks {
				t.Log(c.Output)
			}
		})
	}
}

func TestInGuestWatch(t *testing.T) {
	if os.Getenv(inGuest) == "" {
		t.Skip("runs in the guest that TestGuestWatch boots")
	}
	const reads, writes, refused, logs = 64, 20, 7, 5
	for _, noRing := range []bool{false, true} {
		c, err := passthru.Open("/dev/nvme0", passthru.Options{NoRing: noRing})
		require.NoError(t, err)
		w, err := Watch()
		require.NoError(t, err)
		var wg sync.WaitGroup
		data := make([]byte, 512)
		for i := range reads {
			wg.Go(func() {
				read := nvme.Read(1, uint64(i), 8, 512)
				_, err := c.IO(t.Context(), &read, make([]byte, 4096))
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		for range writes {
			write := nvme.Write(1, 0, 1, 512, false)
			_, err := c.IO(t.Context(), &write, data)
			require.NoError(t, err)
		}
		for range refused {
			unknown := nvme.New(0x90, 1)
			_, err := c.IO(t.Context(), &unknown, nil)
			require.ErrorIs(t, err, nvme.InvalidOpcode)
		}
		for range logs {
			get := nvme.GetLog(nvme.LogSMART, nvme.AllNamespaces, 0, 512)
			_, err := c.Admin(t.Context(), &get, data)
			require.NoError(t, err)
		}
		all, err := w.Read()
		require.NoError(t, err)
		type key struct {
			admin  bool
			opcode uint8
		}
		got := map[key]uint64{}
		for _, h := range all {
			assert.Zero(t, h.Controller)
			got[key{h.Admin, h.Opcode}] = h.Count
			// Which bucket a latency went into is right if the total lies between the buckets' bounds.
			var low, high uint64
			for i, n := range h.Counts {
				low, high = low+n<<i, high+n<<(i+1)
			}
			assert.GreaterOrEqual(t, uint64(h.Total), low)
			assert.Less(t, uint64(h.Total), high)
			assert.LessOrEqual(t, h.Quantile(0.5), h.Quantile(0.99))
			t.Logf("admin %t, opcode %02xh: %d, mean %s, half below %s", h.Admin, h.Opcode, h.Count, h.Mean(),
				h.Quantile(0.5))
		}
		// The reads were in flight together: an interrupt that completes many of them in the middle of a program is not
		// seen.
		assert.Positive(t, got[key{false, nvme.NVMRead}])
		assert.LessOrEqual(t, got[key{false, nvme.NVMRead}], uint64(reads))
		delete(got, key{false, nvme.NVMRead})
		assert.Equal(t, map[key]uint64{{false, nvme.NVMWrite}: writes, {false, 0x90}: refused,
			{true, nvme.AdminGetLogPage}: logs}, got)
		require.NoError(t, w.Close())
		require.NoError(t, c.Close())
	}
}
