package endtoend

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// link is a cable, a pair of virtual interfaces, from the network of this process to the network of another process.
// The end here is 10.99.N.1 and the end there is 10.99.N.2. Both ends go when the other process has ended.
type link struct {
	N   int
	pid int
}

// links is the network of all links.
const links = "10.99.0.0/16"

func (l *link) here() string   { return fmt.Sprintf("10.99.%d.1", l.N) }
func (l *link) there() string  { return fmt.Sprintf("10.99.%d.2", l.N) }
func (l *link) device() string { return fmt.Sprintf("link%d", l.N) }

// ip runs ip(8), of iproute2.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// apart gives a process that is to be started a network of its own.
func (*link) apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
}

// plug connects the cable to a process that apart prepared.
func (l *link) plug(t testing.TB, pid int) {
	t.Helper()
	l.pid = pid
	_ = ip("link", "del", l.device()) // the link to a process that was killed just now may still exist
	require.NoError(t, ip("link", "add", l.device(), "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(pid)))
	require.NoError(t, ip("addr", "add", l.here()+"/24", "dev", l.device()))
	require.NoError(t, ip("link", "set", l.device(), "up"))
}

// await waits, in the process, for the cable, and sets its end up.
func (l *link) await() error {
	for range 1000 {
		if _, err := net.InterfaceByName("eth0"); err == nil {
			for _, args := range [][]string{
				{"link", "set", "lo", "up"}, {"addr", "add", l.there() + "/24", "dev", "eth0"}, {"link", "set", "eth0",
					"up"},
				{"route", "add", "default", "via", l.here()},
			} {
				if err := ip(args...); err != nil {
					return err
				}
			}
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("no cable to %s", l.there())
}

// inside runs ip in the network of the process.
func (l *link) inside(args ...string) error {
	out, err := exec.Command("nsenter", append([]string{"-t", fmt.Sprint(l.pid), "-n", "ip"},
		args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("nsenter ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// cut is a way in which a link fails. No way closes a connection or notifies either side: packets are lost.
type cut struct {
	name      string
	cut, mend func(l *link) error
}

func cuts() []cut {
	return []cut{
		{"down here",
			func(l *link) error { return ip("link", "set", l.device(), "down") },
			func(l *link) error { return ip("link", "set", l.device(), "up") }},
		{"down there",
			func(l *link) error { return l.inside("link", "set", "eth0", "down") },
			func(l *link) error {
				if err := l.inside("link", "set", "eth0", "up"); err != nil {
					return err
				}
				return l.inside("route", "replace", "default", "via", l.here()) // went with the link
			}},
		{"one way", // packets to the process are lost; packets from it arrive
			func(l *link) error {
				return ip("neigh", "replace", l.there(), "lladdr", "02:00:00:00:00:99", "dev", l.device(), "nud",
					"permanent")
			},
			func(l *link) error { return ip("neigh", "del", l.there(), "dev", l.device()) }},
	}
}

// apartOrSkip runs the calling test once more in a process with a network of its own, so that the test does not touch
// the machine's network. apartOrSkip returns true in that process. If the system does not permit such a process, the
// test is skipped with the reason, or fails if MILLRACE_NETNS is set.
func apartOrSkip(t *testing.T) bool {
	t.Helper()
	if os.Getenv("MILLRACE_NETNS_CHILD") != "" {
		require.NoError(t, ip("link", "set", "lo", "up"))
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644))
		return true
	}
	if err := permitted(); err != nil {
		if os.Getenv("MILLRACE_NETNS") != "" {
			t.Fatalf("network namespaces: %v", err)
		}
		t.Skipf("network namespaces: %v", err)
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", "^"+t.Name()+"$", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), "MILLRACE_NETNS_CHILD=1")
	new(link).apart(cmd)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// permitted tries the operations that the test needs: a network for a process, and a cable into it.
func permitted() error {
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	cmd := exec.Command("ip", "link", "add", "link0", "type", "veth", "peer", "name", "link1")
	new(link).apart(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("a process with a network of its own: %w: %s", err, out)
	}
	return nil
}
