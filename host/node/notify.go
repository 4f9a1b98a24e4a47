package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// notify tells systemd a state (sd_notify(3)): READY=1, STOPPING=1, WATCHDOG=1. Without NOTIFY_SOCKET it does nothing.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // a name that begins with @ is abstract
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	_, err = c.Write([]byte(state))
	return errors.Join(err, c.Close())
}

// watchdogEvery is how often systemd wants a word: half of WATCHDOG_USEC; 0 if it wants none.
func watchdogEvery() time.Duration {
	n, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(n) * time.Microsecond / 2
}

// watchdog tells systemd that the agent lives, for as long as its locks can be had.
func (a *Agent) watchdog(ctx context.Context) {
	every := watchdogEvery()
	if every == 0 {
		return
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if _, err := a.status(false); err != nil {
			a.log.Error("watchdog", "error", err)
			continue
		}
		if err := notify("WATCHDOG=1"); err != nil {
			a.log.Warn("watchdog", "error", err)
		}
	}
}

// Run is an agent's life under a service manager: it starts, says that it is ready, and, when ctx ends, drains for at most Config.DrainTime
// and closes. ready is called once it serves.
func Run(ctx context.Context, c Config, o Options, ready func(*Agent)) error {
	a, err := Start(context.WithoutCancel(ctx), c, o)
	if err != nil {
		return err
	}
	if err := notify("READY=1"); err != nil {
		a.log.Warn("ready", "error", err)
	}
	a.background(a.watchdog)
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
