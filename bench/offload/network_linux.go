package offload

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inLimitedNetwork calls f in a network namespace of its own. The namespace's loopback device carries at most
// bytesPerSecond, both directions together. Processes that f starts from its goroutine are in the namespace, too. The
// namespace has no name: it ends with its last process, however that ends. The error wraps errNoNetwork if this process
// may not make a namespace, or if the commands ip and tc are absent.
func inLimitedNetwork(ctx context.Context, bytesPerSecond float64, f func() error) error {
	ended := make(chan error, 1)
	go func() {
		// The thread is not unlocked: it ends with this goroutine, and no other goroutine runs in the namespace.
		runtime.LockOSThread()
		if err := limitNetwork(ctx, bytesPerSecond); err != nil {
			ended <- fmt.Errorf("%w: %w", errNoNetwork, err)
			return
		}
		ended <- f()
	}()
	return <-ended
}

// limitNetwork moves the calling thread into a new network namespace with a limited loopback device.
func limitNetwork(ctx context.Context, bytesPerSecond float64) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace (the capability CAP_SYS_ADMIN is wanted): %w", err)
	}
	bits := strconv.FormatInt(int64(8*bytesPerSecond), 10) + "bit"
	for _, command := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", bits, "burst", "256kb", "latency", "100ms"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s (of iproute2): %w: %s", strings.Join(command[:2], " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
