package deploy_test

import (
	"crypto/ed25519"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// Who the guest says that it is.
const (
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8000-000000000004"
	hostID  = "6d696c6c-7261-4365-8000-000000000004"
)

// guestScript takes images to a drive behind the kernel's driver, as an operator does. INTERFACE is the drive's; NEW,
// UNSIGNED and FOREIGN are the images' ids, their first 16 digits.
const guestScript = `
connect() {
	nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" -i 2
	wait_for 120 find_drive
}
find_drive() {
	CTRL=
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat $c/subsysnqn)" = "$NQN" ] && [ "$(cat $c/state)" = live ] && CTRL=${c##*/}
	done
	[ -n "$CTRL" ] && [ -c /dev/ng${CTRL#nvme}n1 ]
}
refuse() {
	if millrace image load "nvme:/dev/$CTRL?commands=$1" /opt/unsigned.mimg 2>/tmp/err; then return 1; fi
	cat /tmp/err
	grep -q "image $UNSIGNED for slot 1 refused at step signature.*$INTERFACE.*operation denied" /tmp/err
	if millrace image load "nvme:/dev/$CTRL?commands=$1" /opt/foreign.mimg 2>/tmp/err; then return 1; fi
	cat /tmp/err
	grep -q "image $FOREIGN for slot 1 refused at step interface.*$FOREIGNINTERFACE.*$INTERFACE" /tmp/err
	nvme error-log /dev/$CTRL -e 1 | tee /tmp/errors
	grep -q "^vs[[:space:]]*: 193" /tmp/errors # C1h
}
load() {
	millrace image load "nvme:/dev/$CTRL?commands=$1" /opt/new.mimg --activate
	millrace image list nvme:/dev/$CTRL | tee /tmp/list
	grep -q "^1  *field  *$NEW .*trusted  *active" /tmp/list
	nvme fw-log /dev/$CTRL | tee /tmp/fw
	grep -qi "^afi *: *0x2" /tmp/fw
	grep -q "^frs2 .*($(echo $NEW | cut -c1-8))" /tmp/fw
	nvme id-ctrl /dev/$CTRL | grep "^fr  *: $(echo $NEW | cut -c1-8)"
}
rollback() {
	millrace image rollback nvme:/dev/$CTRL
	nvme fw-log /dev/$CTRL | grep -i "^afi *: *0x1"
}
chmod +x /opt/millrace
ln -s /opt/millrace /bin/millrace
check connect connect
find_drive
check refuse-vendor refuse vendor
check refuse-standard refuse standard
check load-vendor load vendor
check rollback-vendor rollback
check load-standard load standard
check rollback-standard rollback
`

// TestGuestImages loads, activates and rolls back images on drives behind the unmodified kernel's driver (nvme: URIs),
// and has nvme-cli tell the slots.
func TestGuestImages(t *testing.T) {
	kernels := guest.Kernels(t)
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	unsigned, um := numbered(t, 6)
	_, nm := numbered(t, 7)
	signed, err := nm.Sign(key)
	require.NoError(t, err)
	foreign, fm := anImage(t, func(s *image.Spec) { s.Interface[0]++ })
	program := filepath.Join(t.TempDir(), "millrace")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/millrace/millrace/cmd/millrace")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	binary, err := os.ReadFile(program)
	require.NoError(t, err)
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			drive, err := csd.Open(csd.Options{Size: 4 << 20, SLMBytes: 4 << 20, Trust: func(t *image.Trust) error {
				t.Policy, t.Keys = image.PolicyRequire, []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
				return nil
			}})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, drive.Close()) })
			_, port, err := net.SplitHostPort(hosttest.Serve(t, drive.Subsystem(),
				tcp.TargetOptions{Hosts: []string{hostNQN}}))
			require.NoError(t, err)
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Modules: []string{"?crc32c_generic", "nvme-tcp"}, Programs: []string{"nvme"},
				Files: map[string][]byte{"/opt/millrace": binary, "/opt/new.mimg": signed,
					"/opt/unsigned.mimg": unsigned, "/opt/foreign.mimg": foreign},
				Env: map[string]string{
					"ADDR": guest.HostLoopback, "PORT": port,
					"NQN":     drive.Subsystem().NQN(),
					"HOSTNQN": hostNQN, "HOSTID": hostID, "INTERFACE": stock.Interface().String(),
					"FOREIGNINTERFACE": fm.Interface().String(),
					"NEW":              nm.ID.Short(), "UNSIGNED": um.ID.Short(), "FOREIGN": fm.ID.Short(),
				},
				Script: guestScript,
			})
			for _, c := range result.Checks {
				t.Logf("%s:\n%s", c.Name, c.Output)
			}
			result.Subtests(t, "connect", "refuse-vendor", "refuse-standard", "load-vendor", "rollback-vendor",
				"load-standard", "rollback-standard")
		})
	}
}
