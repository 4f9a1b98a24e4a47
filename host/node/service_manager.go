package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// notify reports a state to systemd (sd_notify(3)): READY=1, STOPPING=1 or WATCHDOG=1. Without NOTIFY_SOCKET it does
// nothing.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	// A name that begins with @ is an abstract socket.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	_, err = c.Write([]byte(state))
	return errors.Join(err, c.Close())
}

// watchdogInterval returns the interval at which watchdog sends WATCHDOG=1: half of WATCHDOG_USEC, or 0 if systemd
// expects none.
func watchdogInterval() time.Duration {
	n, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(n) * time.Microsecond / 2
}

// watchdog tells systemd that the node works, as long as the node's status can be read, which takes every lock of its
// parts. It returns when ctx ends.
func watchdog(ctx context.Context, status *statusReader, log *slog.Logger) {
	interval := watchdogInterval()
	if interval == 0 {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := status.read(false); err != nil {
			log.Error("watchdog", "error", err)
			continue
		}
		if err := notify("WATCHDOG=1"); err != nil {
			log.Warn("watchdog", "error", err)
		}
	}
}

// Run is an agent's life under a service manager: it starts and says that it is ready. When ctx ends, it drains for at
// most Config.DrainTime and closes. ready is called when the node serves.
func Run(ctx context.Context, c Config, o Options, ready func(*Agent)) error {
	a, err := Start(context.WithoutCancel(ctx), c, o)
	if err != nil {
		return err
	}
	if err := notify("READY=1"); err != nil {
		a.log.Warn("ready", "error", err)
	}
	a.background(func(ctx context.Context) { watchdog(ctx, a.status, a.log) })
	if ready != nil {
		ready(a)
	}
	<-ctx.Done()
	if err := notify("STOPPING=1"); err != nil {
		a.log.Warn("stopping", "error", err)
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(c.DrainTime))
	defer cancel()
	if err := a.Drain(bound); err != nil {
		a.log.Warn("splits are cut off: they go to other drives", "error", err)
	}
	return a.Close()
}
