package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lifetime ends a guest that hangs. A guest that works takes one to two minutes, and ten times as long on a machine
// with much other work.
const lifetime = 25 * time.Minute

// HostLoopback is where a guest finds what listens on the host's 127.0.0.1.
const HostLoopback = "10.0.2.2"

// Options name the kernel to boot and the work to do in the guest. The zero value boots the oldest kernel and does
// nothing.
type Options struct {
	Kernel string // a series of Kernels; "" is the oldest
	// kernel modules to load, in order; what they need comes along; "name parameter=value", "?name" may be absent
	Modules []string
	// programs of the guests' root beside busybox: nvme, fio, mke2fs
	Programs []string
	// files by their path in the guest, executable: static binaries, scripts
	Files  map[string][]byte
	Env    map[string]string                              // variables of the script
	Script string                                         // for busybox's shell
	Host   map[string]func(args []string) (string, error) // what the script may call with `host NAME`
	Memory int                                            // MiB; 0 is 1024
	CPUs   int                                            // 0 is 2: the kernel makes at most one I/O queue a processor
	QEMU   []string                                       // further arguments of QEMU, such as a device
	Append string                                         // further parameters of the kernel
	Allow  []*regexp.Regexp                               // kernel warnings that the test causes on purpose
}

// Check is one named result of a guest's script.
type Check struct {
	Name    string
	Status  int           // Status is that of the command; 0 passed.
	Skipped string        // why it was not run, "" if it was
	Output  string        // the last 16 KiB of both streams
	Took    time.Duration // on the host's clock
}

// Result is the outcome of a guest.
type Result struct {
	Uname    string // Uname is the guest's, and shows which kernel judged.
	Console  string
	Checks   []Check
	Files    map[string][]byte
	Problems []string // what the first process could not do
	Status   int      // the script's exit status
	Ended    bool     // the script came to its end
	Started  time.Time
	Booted   time.Time     // when the script began
	Took     time.Duration // from start to QEMU's end
}

// Failed returns the checks that did not pass.
func (r *Result) Failed() []Check {
	var failed []Check
	for _, c := range r.Checks {
		if c.Skipped == "" && c.Status != 0 {
			failed = append(failed, c)
		}
	}
	return failed
}

// Subtests makes a subtest of every check. want names checks that must be among them, so that a script that ended early
// does not pass.
func (r *Result) Subtests(t *testing.T, want ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range r.Checks {
		seen[c.Name] = true
		t.Run(c.Name, func(t *testing.T) {
			if c.Skipped != "" {
				t.Skip(c.Skipped)
			}
			if c.Status != 0 {
				t.Errorf("exit status %d after %v, said:\n%s", c.Status, c.Took.Round(time.Millisecond), c.Output)
			}
		})
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("check %s never ran", name)
		}
	}
	if len(r.Checks) == 0 {
		t.Error("no check ran")
	}
	if t.Failed() {
		t.Logf("the end of the console:\n%s", tail(r.Console, 80))
	}
}

// Boot runs a guest to its end and returns what became of it. It fails the test when the guest could not run, did not
// end, or its kernel warned; failed checks are left for Report.
func Boot(t testing.TB, o Options) *Result {
	t.Helper()
	guests := Need(t)
	if o.Kernel == "" {
		o.Kernel = Kernels(t)[0]
	}
	result, err := boot(guests, &o)
	if result != nil {
		saveLogs(t, result)
		t.Logf("guest: %s: booted in %.1f s, ended after %.1f s", result.Uname,
			result.Booted.Sub(result.Started).Seconds(), result.Took.Seconds())
	}
	if err != nil {
		console := ""
		if result != nil {
			console = "\nthe end of the console:\n" + tail(result.Console, 80)
			for _, c := range result.Failed() {
				console = fmt.Sprintf("\ncheck %s failed (%d): %s", c.Name, c.Status, c.Output) + console
			}
		}
		t.Fatalf("guest with kernel %s: %v%s", o.Kernel, err, console)
	}
	for _, p := range result.Problems {
		t.Errorf("guest: %s", p)
	}
	if found := Warnings(result.Console, o.Allow...); len(found) > 0 {
		t.Errorf("the guest's kernel warned:\n%s\nthe end of the console:\n%s", strings.Join(found, "\n"),
			tail(result.Console, 120))
	}
	if result.Status != 0 && len(result.Failed()) == 0 {
		t.Errorf("the script ended with status %d; the end of the console:\n%s", result.Status, tail(result.Console, 40))
	}
	return result
}

func boot(guests string, o *Options) (*Result, error) {
	work, err := os.MkdirTemp("", "guest") // short: a socket's path has 108 bytes at most
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	archive := filepath.Join(work, "initramfs")
	if err := writeInitramfs(archive, guests, o); err != nil {
		return nil, err
	}
	port, err := net.Listen("unix", filepath.Join(work, "port"))
	if err != nil {
		return nil, fmt.Errorf("listen for the guest: %w", err)
	}
	defer port.Close()

	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", arguments(work, archive, guests, o)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = endWithParent()
	result := &Result{Started: time.Now(), Files: map[string][]byte{}}
	exited, err := start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start QEMU: %w: .ci/kernel installs it", err)
	}
	s := &session{result: result, host: o.Host, now: time.Now}
	served := make(chan error, 1)
	go func() { served <- s.accept(ctx, port) }()

	var serveErr, exitErr error
	select {
	case serveErr = <-served:
		if serveErr == nil {
			// The script is done and all was read; the guest's own way down is not what is tested.
			cancel()
		}
		exitErr = <-exited
		if serveErr == nil {
			exitErr = nil
		}
	case exitErr = <-exited:
		// QEMU has ended, so its socket is closed; if it never connected, the listener must be closed.
		port.Close()
		serveErr = <-served
	}
	result.Took = time.Since(result.Started)
	console, readErr := os.ReadFile(filepath.Join(work, "console"))
	result.Console = string(console)
	switch {
	case readErr != nil:
		return result, fmt.Errorf("read the console: %w", readErr)
	case result.Ended:
		return result, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return result, fmt.Errorf("not done in %v (in check %q)", lifetime, s.begun)
	}
	return result, fmt.Errorf("it ended before its script (in check %q): %w: %s", s.begun,
		errors.Join(serveErr, exitErr), strings.TrimSpace(said.String()))
}

// accept waits for QEMU to connect the port and serves it. Closing the connection when ctx ends frees a read that waits
// for a guest which has hung; QEMU is killed by then too.
func (s *session) accept(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		return fmt.Errorf("wait for QEMU: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return s.serve(conn)
}

func arguments(work, archive, guests string, o *Options) []string {
	memory, cpus := o.Memory, o.CPUs
	if memory == 0 {
		memory = 1024
	}
	if cpus == 0 {
		cpus = 2
	}
	// The kernel tests its algorithms when it first uses them, and refuses an algorithm whose test took more than a
	// minute, as the largest groups do where the machine has other work. Multi-threaded TCG panics a guest once in a
	// hundred boots. Without cx16 the kernel's allocator has no CMPXCHG16B, after which a guest was seen to fault with
	// flags that held bits of an address. A watchdog would report this machine's load, and so does the check that timer
	// interrupts come in time.
	return append([]string{
		"-M", "pc", "-accel", "tcg,thread=single", "-cpu", "max,-cx16", "-smp", strconv.Itoa(cpus),
		"-m", strconv.Itoa(memory), "-nodefaults", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(guests, "kernels", o.Kernel, "vmlinux"), "-initrd", archive,
		"-append", "console=ttyS0 loglevel=7 panic=-1 reboot=t nowatchdog no_timer_check rcupdate.rcu_cpu_stall_suppress=1 " +
			"cryptomgr.notests=1 random.trust_cpu=on mitigations=off nokaslr net.ifnames=0 " + o.Append,
		"-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-serial", "file:" + filepath.Join(work, "console"),
		"-chardev", "socket,id=port,path=" + filepath.Join(work, "port"), "-serial", "chardev:port",
	}, o.QEMU...)
}

func saveLogs(t testing.TB, r *Result) {
	dir := os.Getenv("MILLRACE_KERNEL_LOGS")
	if dir == "" {
		return
	}
	dir = filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "_"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Errorf("save logs: %v", err)
		return
	}
	save := func(name string, write func(io.Writer)) {
		var b bytes.Buffer
		write(&b)
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			t.Errorf("save logs: %v", err)
		}
	}
	save("console", func(w io.Writer) { io.WriteString(w, r.Console) })
	save("checks", func(w io.Writer) {
		for _, c := range r.Checks {
			fmt.Fprintf(w, "== %s: status %d, %v %s\n%s\n", c.Name, c.Status, c.Took.Round(time.Millisecond), c.Skipped,
				c.Output)
		}
	})
}
