package kerneltest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

// targetVariable is the variable that makes the test binary a target, and configures the target.
const targetVariable = "MILLRACE_KERNELTEST_TARGET"

// targetConfig is a target's in its own process.
type targetConfig struct {
	Flash     string // file
	Size      int64
	BlockSize uint32
	UUID      uuid.UUID
	Card      uuid.UUID // of a drive without flash, which is served beside; zero: there is none
	Listen    string
	Advertise string
	Hosts     []string
}

func TestMain(m *testing.M) {
	if config := os.Getenv(targetVariable); config != "" {
		if err := runTarget(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runTarget serves until its standard input ends, which it does when the test's process does. A line of the input is
// a command: "changed NSID" tells hosts that a namespace changed, "add NSID" and "remove NSID" have one come and go,
// "record FILE" records the bytes that hosts send, and "record" ends the recording. A line of the output says that
// the command is done.
func runTarget(config string) error {
	var c targetConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	flash, err := openFlash(c.Flash, c.Size)
	if err != nil {
		return err
	}
	drive, err := controller.New(controller.Options{
		Flash: flash, BlockSize: c.BlockSize, UUID: c.UUID, Compute: newCompute(1 << 20), Firmware: "7.7",
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	at := netip.AddrPortFrom(netip.MustParseAddr(c.Advertise), port)
	target, err := tcp.NewTarget(tcp.TargetOptions{Hosts: c.Hosts, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	entries := []fabrics.Entry{
		{Type: fabrics.CurrentDiscovery, Port: 1, Address: at, NQN: fabrics.DiscoveryNQN},
		{Type: fabrics.NVM, Port: 1, Address: at, NQN: drive.NQN()},
	}
	subsystems := []*controller.Subsystem{drive}
	if c.Card != uuid.Nil {
		card, err := controller.New(controller.Options{UUID: c.Card, Compute: newCompute(1 << 20), Firmware: "7.7"})
		if err != nil {
			return err
		}
		subsystems = append(subsystems, card)
		entries = append(entries, fabrics.Entry{Type: fabrics.NVM, Port: 1, Address: at, NQN: card.NQN()})
	}
	discovery := controller.NewDiscovery(controller.DiscoveryOptions{Entries: entries})
	for _, s := range append(subsystems, discovery) {
		if err := target.Add(s); err != nil {
			return err
		}
	}
	served := make(chan error, 1)
	tape := new(recorder)
	go func() { served <- target.Serve(recordingListener{l, tape}) }()
	fmt.Println(port)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := obey(in.Text(), drive, c.Flash, tape); err != nil {
			return fmt.Errorf("command %q: %w", in.Text(), err)
		}
		fmt.Println("done")
	}
	if err := errors.Join(target.Close(), flash.f.Close()); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, tcp.ErrTargetClosed) {
		return err
	}
	return nil
}

// obey executes a line of the input. The content of added namespaces is in files beside the drive's.
func obey(line string, drive *controller.Subsystem, flash string, tape *recorder) error {
	if file, ok := strings.CutPrefix(line, "record"); ok {
		return tape.to(strings.TrimSpace(file))
	}
	var verb string
	var nsid uint32
	if _, err := fmt.Sscanf(line, "%s %d", &verb, &nsid); err != nil {
		return err
	}
	switch verb {
	case "changed":
		drive.NamespaceChanged(nsid)
		return nil
	case "add":
		more, err := openFlash(fmt.Sprintf("%s.%d", flash, nsid), 16<<20)
		if err != nil {
			return err
		}
		_, err = drive.ChangeNamespaces(nil, []controller.Namespace{{NSID: nsid, Flash: more}})
		return err // the file is closed with the process
	case "remove":
		_, err := drive.ChangeNamespaces([]uint32{nsid}, nil)
		return err
	}
	return errors.New("no such command")
}

// target is the test's end of a target's process, which can be killed and started again on the same port and flash.
type target struct {
	t      *testing.T
	config targetConfig
	nqn    string
	card   string // NQN of the drive without flash

	mu  sync.Mutex // guards what follows: functions for guests run beside the test
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
	log strings.Builder
}

func startTarget(t *testing.T, blockSize uint32) *target {
	t.Helper()
	return startTargets(t, blockSize, uuid.Nil)
}

// startTargets starts a target that also serves a drive without flash, unless card is zero.
func startTargets(t *testing.T, blockSize uint32, card uuid.UUID) *target {
	t.Helper()
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(t.Name()))
	const named = "nqn.2014-08.org.nvmexpress:uuid:"
	x := &target{t: t, nqn: named + id.String(), card: named + card.String(), config: targetConfig{
		Flash: t.TempDir() + "/flash", Size: 64 << 20, BlockSize: blockSize, UUID: id, Card: card, Listen: "127.0.0.1:0",
		Advertise: guest.HostLoopback, Hosts: []string{hostNQN},
	}}
	require.NoError(t, x.start())
	t.Cleanup(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err := x.end(); err != nil {
			t.Errorf("the target did not end in order: %v", err)
		}
		if t.Failed() {
			t.Logf("the target said:\n%s", x.log.String())
		}
	})
	return x
}

// start starts the process and waits until it listens; after a kill, where it did before.
func (x *target) start() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cmd != nil {
		return errors.New("the target runs already")
	}
	config, err := json.Marshal(x.config)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), targetVariable+"="+string(config))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = &x.log // exec copies; it is read after Wait
	if err := cmd.Start(); err != nil {
		return err
	}
	var port int
	if _, err := fmt.Fscanln(out, &port); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("the target did not say where it listens: %w: %s", err, x.log.String())
	}
	x.config.Listen = fmt.Sprintf("127.0.0.1:%d", port)
	x.cmd, x.in, x.out = cmd, in, out
	return nil
}

// kill is kill -9.
func (x *target) kill() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cmd == nil {
		return errors.New("the target does not run")
	}
	err := x.cmd.Process.Kill()
	_ = x.cmd.Wait() // says that it was killed
	x.cmd = nil
	return err
}

// end closes the process's input and waits: it must end by itself. x.mu is held.
func (x *target) end() error {
	if x.cmd == nil {
		return nil
	}
	err := x.in.Close()
	err = errors.Join(err, x.cmd.Wait())
	x.cmd = nil
	return err
}

func (x *target) tell(command string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cmd == nil {
		return errors.New("the target does not run")
	}
	if _, err := io.WriteString(x.in, command+"\n"); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(x.out, &answer); err != nil || answer != "done" {
		return fmt.Errorf("the target did not do %q: %q: %w", command, answer, err)
	}
	return nil
}

// functions are what a guest may have this host do with the target.
func (x *target) functions() map[string]func([]string) (string, error) {
	return map[string]func([]string) (string, error){
		"kill-target":       func([]string) (string, error) { return "", x.kill() },
		"start-target":      func([]string) (string, error) { return "", x.start() },
		"namespace-changed": func(args []string) (string, error) { return "", x.tell("changed " + args[0]) },
		"add-namespace":     func(args []string) (string, error) { return "", x.tell("add " + args[0]) },
		"remove-namespace":  func(args []string) (string, error) { return "", x.tell("remove " + args[0]) },
	}
}

// env is what the scripts want to know.
func (x *target) env() map[string]string {
	_, port, _ := net.SplitHostPort(x.config.Listen)
	return map[string]string{
		"TARGET": "millrace", "ADDR": guest.HostLoopback, "PORT": port, "NQN": x.nqn, "HOSTNQN": hostNQN, "HOSTID": hostID,
		"CARD": x.card, "ADDS": "yes", "FEATURES": "1 2 4 5 6 7 0xa 0xb 0xf 0x16 0x19 0x80",
	}
}
