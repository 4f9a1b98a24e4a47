package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// forwarded is QEMU's second network, by which this machine reaches a port of the guest.
type forwarded struct{ port int }

func forward(t *testing.T) forwarded {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() // for QEMU
	return forwarded{l.Addr().(*net.TCPAddr).Port}
}

func (f forwarded) address() string { return fmt.Sprintf("127.0.0.1:%d", f.port) }

func (f forwarded) qemu() []string {
	return []string{
		"-netdev", fmt.Sprintf("user,id=forward,net=10.0.3.0/24,hostfwd=tcp:127.0.0.1:%d-10.0.3.15:4420", f.port),
		"-device", "virtio-net-pci,netdev=forward,romfile=",
	}
}

// env is what forward.sh and nvmet.sh want to know.
func (f forwarded) env(nqn string) map[string]string {
	return map[string]string{"ADDR": "10.0.3.15", "PORT": "4420", "NQN": nqn, "HOSTNQN": hostNQN}
}

const nvmetNQN = "nqn.2026-11.io.millrace:nvmet"

// Millrace's initiator passes the same suite against the kernel's target as against Millrace's own.
func TestOurHostAgainstNVMet(t *testing.T) {
	for _, kernel := range guest.Kernels(t) {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			net := forward(t)
			judge := func([]string) (string, error) {
				ok := t.Run("suite", func(t *testing.T) {
					hosttest.Run(t, hosttest.Target{
						Address: net.address(), Subsystem: nvmetNQN, HostNQN: hostNQN, OtherHost: "nqn.2024-01.io.millrace:stranger",
						Slow: true,
					})
				})
				if !ok {
					return "", errors.New("the suite failed")
				}
				return "", nil
			}
			events := make(chan nvme.AsyncEvent, 64)
			var h *tcp.Host
			listen := func([]string) (_ string, err error) {
				h, err = tcp.Dial(context.Background(), tcp.DialOptions{
					Address: net.address(), Subsystem: nvmetNQN, HostNQN: hostNQN, ConnectTimeout: time.Minute,
					OnEvent: func(e nvme.AsyncEvent) { events <- e },
				})
				if err == nil {
					t.Cleanup(func() { _ = h.Close() }) // the guest may be gone by then
				}
				return "", err
			}
			heard := func([]string) (string, error) {
				select {
				case e := <-events:
					if e != nvme.EventNamespaceChanged {
						return "", fmt.Errorf("event %+v", e)
					}
					// The event comes again once this is read.
					cmd, b := nvme.GetLog(nvme.LogChangedNamespaces, nvme.AllNamespaces, 0, nvme.ChangedLogSize), make([]byte,
						nvme.ChangedLogSize)
					_, err := h.Admin(context.Background(), &cmd, b)
					return fmt.Sprintln("changed:", nvme.UnmarshalNamespaceList(b)), err
				case <-time.After(30 * time.Second):
					return "", errors.New("no event came")
				}
			}
			result := guest.Boot(t, guest.Options{
				Kernel: kernel, Modules: append([]string{"nvmet-tcp", "null_blk nr_devices=0"},
					hostModules...), Files: library(t),
				Host: map[string]func([]string) (string, error){"judge": judge, "listen": listen, "heard": heard},
				Env:  net.env(nvmetNQN), QEMU: net.qemu(), Script: script(t, "forward", "nvmet", "judge"),
				Allow: []*regexp.Regexp{regexp.MustCompile(`nvmet`)}, // what it says of digests that do not match
			})
			result.Subtests(t, "network", "serve", "judged", "events")
		})
	}
}
