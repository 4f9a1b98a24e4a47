package extents

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// inGuest names, in a guest, the folder where the drive's file system is mounted.
const inGuest = "MILLRACE_IN_GUEST"

// Who the guest says that it is.
const (
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8000-000000000003"
	hostID  = "6d696c6c-7261-4365-8000-000000000003"
)

// guestScript connects the drive, tries it as an operator does, and preprocesses files that lie on it.
const guestScript = `
connect() {
	nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" -i 2
	wait_for 120 find_drive
}
find_drive() {
	CTRL= NS=
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat $c/subsysnqn)" = "$NQN" ] && [ "$(cat $c/state)" = live ] && CTRL=${c##*/}
	done
	for b in /sys/class/nvme-subsystem/*/nvme*n*; do
		[ -e $b/nsid ] && [ "$(cat $b/nsid)" = 1 ] && NS=${b##*/}
	done
	[ -n "$CTRL" ] && [ -b /dev/$NS ] && [ $(ls /dev/ng*n* | wc -l) = 3 ]
}
validate() {
	millrace drive validate "nvme:/dev/$CTRL?commands=$1" | tee /tmp/validated
	for step in link identify flash memory move self-test; do
		grep -q "^$step  *passed" /tmp/validated
	done
	grep -q "^admin 02h  *[0-9]* .*mean" /tmp/validated
}
in_use() {
	millrace drive validate nvme:/dev/$CTRL | tee /tmp/validated
	grep -q "^flash  *skipped .*$NS is in use" /tmp/validated
	grep -q "^self-test  *passed" /tmp/validated
}
look() {
	millrace drive list | tee /tmp/list
	grep -q "nvme:/dev/$CTRL .*Millrace CSD .*tcp  *live" /tmp/list
	millrace drive smart --cross-check nvme:/dev/$CTRL | tee /tmp/smart
	grep -q "cross-check  *agrees" /tmp/smart
	millrace drive info nvme:/dev/$CTRL | grep "vendor commands"
}
filesystem() {
	mkfs.ext4 -q /dev/$NS
	mount -t ext4 /dev/$NS /mnt
}
files() {
	millrace dataset generate --model rm1 --rows 20000 --codec snappy --out /mnt/rm1 --progress none
	millrace preprocess --pipeline rm1 --batch 3000 --drive nvme:/dev/$CTRL \
		--in /mnt/rm1/part-00000.parquet --slm 24MiB --out /tmp/a --progress none | tee /tmp/report
	grep "by the drive (vendor)" /tmp/report
	millrace preprocess --pipeline rm1 --batch 3000 --engine cpu \
		--in /mnt/rm1/part-00000.parquet --slm 24MiB --out /tmp/b --progress none
	for f in dense labels values lengths sparse; do cmp /tmp/a/$f.npy /tmp/b/$f.npy || return 1; done
	cp /mnt/rm1/part-00000.parquet /tmp/elsewhere.parquet
	if millrace preprocess --pipeline rm1 --drive nvme:/dev/$CTRL \
		--in /tmp/elsewhere.parquet --out /tmp/c --progress none; then return 1; fi
	test ! -e /tmp/c
}
reset() {
	millrace drive reset nvme:/dev/$CTRL
	wait_for 120 find_drive
	millrace drive info nvme:/dev/$CTRL
}
chmod +x /opt/*
ln -s /opt/millrace /bin/millrace
check connect connect
find_drive
check look look
check validate-vendor validate vendor
check validate-standard validate standard
check filesystem filesystem
check presto /opt/extents.test -test.v -test.run InGuest
check files files
check in-use in_use
umount /mnt
check reset reset
`

// TestGuestPreSto is PreSto's flow as it is deployed: a drive on the wire, behind the unmodified kernel's driver and
// ext4; the program in the guest finds where files lie and has the drive preprocess them, through the generic devices.
func TestGuestPreSto(t *testing.T) {
	kernels := guest.Kernels(t)
	dir := t.TempDir()
	files := map[string][]byte{}
	for name, args := range map[string][]string{
		"extents.test": {"test", "-c", "-o", filepath.Join(dir, "extents.test"), "."},
		"millrace": {"build", "-trimpath", "-o", filepath.Join(dir, "millrace"),
			"github.com/millrace/millrace/cmd/millrace"},
	} {
		build := exec.Command("go", args...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
		files["/opt/"+name], err = os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
	}
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			drive, err := csd.Open(csd.Options{Size: 64 << 20, SLMBytes: 32 << 20})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, drive.Close()) })
			_, port, err := net.SplitHostPort(hosttest.Serve(t, drive.Subsystem(),
				tcp.TargetOptions{Hosts: []string{hostNQN}}))
			require.NoError(t, err)
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Modules: []string{"?crc32c_generic", "nvme-tcp", "ext4"}, Programs: []string{"nvme",
					"mkfs.ext4"}, Files: files,
				Env: map[string]string{
					"ADDR": guest.HostLoopback, "PORT": port,
					"NQN":     drive.Subsystem().NQN(),
					"HOSTNQN": hostNQN, "HOSTID": hostID, inGuest: "/mnt",
				},
				Script: guestScript,
			})
			for _, c := range result.Checks {
				t.Logf("%s:\n%s", c.Name, c.Output)
			}
			result.Subtests(t, "connect", "look", "validate-vendor", "validate-standard", "filesystem", "presto", "files",
				"in-use", "reset")
		})
	}
}

// TestInGuestPreSto writes files and preprocesses them where they lie, with both command sets.
func TestInGuestPreSto(t *testing.T) {
	mount := os.Getenv(inGuest)
	if mount == "" {
		t.Skip("runs in the guest that TestGuestPreSto boots")
	}
	writeParquet(t, filepath.Join(mount, "part-0.parquet"), 5000, 1)
	pieces := fragment(t, filepath.Join(mount, "part-0.parquet"), mount, "pieces.parquet")
	prog, schema := pipeline()
	reference, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	defer reference.Close()
	for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
		for _, path := range []string{filepath.Join(mount, "part-0.parquet"), pieces} {
			m, err := Find(path, Options{})
			require.NoError(t, err)
			t.Logf("%+v in %d extents", m.Disk, len(m.Extents))
			require.Equal(t, uint32(1), m.Disk.NSID)
			require.NotEmpty(t, m.Disk.Control)
			dev, err := sdk.Open(t.Context(), "nvme:/dev/"+m.Disk.Control+"?commands="+string(set), sdk.DeviceOptions{})
			require.NoError(t, err)
			require.True(t, dev.HasCompute())
			p, err := sdk.NewProcessor(t.Context(), dev, prog, schema, processor.Options{})
			require.NoError(t, err)
			want := preprocess(t, reference, openPartition(t, path, nil))
			got := preprocess(t, p, openPartition(t, path, m.Extents))
			require.NoError(t, m.Check())
			require.Len(t, got, len(want))
			for i := range want {
				require.Empty(t, tensor.Diff(want[i], got[i]), "%s, %s, mini-batch %d", path, set, i)
			}
			counters, err := dev.Counters(t.Context())
			require.NoError(t, err)
			assert.Positive(t, counters.FlashToDRAM.Bytes)
			require.NoError(t, p.Close())
			require.NoError(t, dev.Close())
		}
	}
}
