package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// authKernel is the first of the kernels here that is built with authentication.
const authKernel = "6.12"

// agreements are the pairs that are tried against a kernel: every hash, every group, and each hash with and without
// one.
var agreements = []auth.Agreed{
	{Hash: auth.SHA256, Group: auth.NullGroup}, {Hash: auth.SHA384, Group: auth.NullGroup}, {Hash: auth.SHA512,
		Group: auth.NullGroup},
	{Hash: auth.SHA256, Group: auth.FFDHE2048}, {Hash: auth.SHA384, Group: auth.FFDHE2048}, {Hash: auth.SHA512,
		Group: auth.FFDHE2048},
	{Hash: auth.SHA256, Group: auth.FFDHE3072}, {Hash: auth.SHA256, Group: auth.FFDHE4096}, {Hash: auth.SHA256,
		Group: auth.FFDHE6144},
	{Hash: auth.SHA512, Group: auth.FFDHE8192},
}

func authName(a auth.Agreed) string {
	return strings.ToLower(strings.ReplaceAll(a.Hash.String(), "-", "")) + "-" + a.Group.String()
}

func newKey(t *testing.T, h auth.Hash) auth.Key {
	t.Helper()
	k, err := auth.GenerateKey(h)
	require.NoError(t, err)
	return k
}

func haveAuthKernel(t *testing.T) {
	t.Helper()
	for _, k := range guest.Kernels(t) {
		if k == authKernel {
			return
		}
	}
	t.Fatalf("there is no guest with kernel %s", authKernel)
}

// The kernel as host tests Millrace's target: each side proves its key to the other.
func TestKernelAuthenticates(t *testing.T) {
	haveAuthKernel(t)
	keys := tcp.HostKeys{Host: newKey(t, auth.SHA256), Controller: newKey(t, auth.SHA512)}
	flash, err := openFlash(t.TempDir()+"/flash", 64<<20)
	require.NoError(t, err)
	t.Cleanup(func() { _ = flash.f.Close() })
	drive, err := controller.New(controller.Options{Flash: flash})
	require.NoError(t, err)
	var ports, want []string
	for _, a := range agreements {
		target, err := tcp.NewTarget(tcp.TargetOptions{
			Hosts: []string{hostNQN}, Handshake: 4 * time.Minute, // a guest computes slowly
			Auth: &tcp.AuthOptions{Keys: map[string]tcp.HostKeys{hostNQN: keys}, Hashes: []auth.Hash{a.Hash},
				Groups: []auth.Group{a.Group}},
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		require.NoError(t, err)
		require.NoError(t, target.Add(drive))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- target.Serve(l) }()
		t.Cleanup(func() {
			require.NoError(t, target.Close())
			require.ErrorIs(t, <-served, tcp.ErrTargetClosed)
		})
		ports = append(ports, fmt.Sprintf("%s=%d", authName(a), l.Addr().(*net.TCPAddr).Port))
		want = append(want, "both-"+authName(a))
	}
	result := guest.Boot(t, guest.Options{
		Kernel: authKernel, Programs: hostPrograms, Modules: hostModules, Files: library(t),
		Env: map[string]string{
			"ADDR": guest.HostLoopback, "NQN": drive.NQN(), "HOSTNQN": hostNQN, "HOSTID": hostID, "PORTS": strings.Join(ports,
				" "),
			"KEY": keys.Host.Text(), "CTRLKEY": keys.Controller.Text(), "WRONGKEY": newKey(t, auth.SHA256).Text(),
		},
		Script: script(t, "auth"),
		// This part tests the kernel's answer to keys that do not fit.
		Allow: []*regexp.Regexp{regexp.MustCompile(`nvme nvme\d+: `)},
	})
	result.Subtests(t, append(want, "host-only", "wrong-key", "no-key", "wrong-drive-key", "again")...)
}

// The kernel's target tests Millrace's initiator.
func TestKernelDemandsAuthentication(t *testing.T) {
	haveAuthKernel(t)
	keys := tcp.HostKeys{Host: newKey(t, auth.SHA256), Controller: newKey(t, auth.SHA384)}
	wrong := newKey(t, auth.SHA256)
	net := forward(t)
	options := func(args []string) (tcp.DialOptions, error) {
		if len(args) != 2 {
			return tcp.DialOptions{}, fmt.Errorf("want a hash and a group: %q", args)
		}
		o := tcp.DialOptions{
			Address: net.address(), Subsystem: nvmetNQN, HostNQN: hostNQN, Key: keys.Host, ControllerKey: keys.Controller,
			Queues: 2, ConnectTimeout: 200 * time.Second, GiveUp: -1,
		}
		for _, h := range []auth.Hash{auth.SHA256, auth.SHA384, auth.SHA512} {
			if strings.HasPrefix(authName(auth.Agreed{Hash: h}), args[0]) {
				o.AuthHashes = []auth.Hash{h}
			}
		}
		for g := auth.NullGroup; g.Known(); g++ {
			if g.String() != args[1] {
				continue
			}
			o.AuthGroups = []auth.Group{g}
			if g == auth.NullGroup { // alone it is refused by nvmet, though configured: it looks for an implementation
				o.AuthGroups = []auth.Group{auth.FFDHE2048, g}
			}
		}
		if o.AuthHashes == nil || o.AuthGroups == nil {
			return o, fmt.Errorf("no such hash and group: %q", args)
		}
		return o, nil
	}
	// nvmet may close the connection before the message with its reason has been read: then there is no association
	// either, and no reason.
	refused := func(err error) bool { return errors.Is(err, auth.NotAuthenticated) || errors.Is(err, tcp.ErrLost) }
	try := func(o tcp.DialOptions) error {
		h, err := tcp.Dial(context.Background(), o)
		if err != nil {
			return err
		}
		b := make([]byte, 4096)
		for range 4 {
			cmd := nvme.Read(1, 0, 8, 512)
			if _, err := h.IO(context.Background(), &cmd, b); err != nil {
				return errors.Join(err, h.Close())
			}
		}
		return h.Close()
	}
	dial := func(args []string) (string, error) {
		o, err := options(args)
		if err != nil {
			return "", err
		}
		if err := try(o); err != nil {
			return "", fmt.Errorf("both ways: %w", err)
		}
		o.ControllerKey = auth.Key{}
		if err := try(o); err != nil {
			return "", fmt.Errorf("one way: %w", err)
		}
		if args[1] != "null" {
			return "", nil
		}
		o.Key = wrong
		if err := try(o); !refused(err) {
			return "", fmt.Errorf("a wrong key: %w", err)
		}
		o.Key, o.ControllerKey = keys.Host, wrong
		if err := try(o); !refused(err) {
			return "", fmt.Errorf("a wrong controller key: %w", err)
		}
		return "", nil
	}
	env := net.env(nvmetNQN)
	env["KEY"], env["CTRLKEY"] = keys.Host.Text(), keys.Controller.Text()
	result := guest.Boot(t, guest.Options{
		Kernel: authKernel, Modules: append([]string{"nvmet-tcp", "null_blk nr_devices=0"},
			hostModules...), Files: library(t),
		Host: map[string]func([]string) (string, error){"dial": dial},
		Env:  env, QEMU: net.qemu(),
		Script: script(t, "forward", "nvmet", "authtarget"),
		Allow:  []*regexp.Regexp{regexp.MustCompile(`nvmet: `)},
	})
	want := []string{"network", "serve"}
	for _, a := range agreements {
		if a.Group != auth.FFDHE8192 { // with another hash there
			want = append(want, "dial-"+authName(a))
		}
	}
	result.Subtests(t, append(want, "dial-sha256-ffdhe8192")...)
}
