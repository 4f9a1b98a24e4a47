package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/wholefile"
)

// Systemd says how units are installed.
type Systemd struct {
	Units string // folder of units
	// Call runs systemctl with arguments.
	Call func(ctx context.Context, args ...string) error
}

// unitHead begins a unit that is made here. A unit that begins otherwise is left alone.
const unitHead = "# Made by millrace up; millrace down removes it.\n"

// unitName returns the name of a daemon's unit.
func unitName(d daemon) string { return "millrace-up-" + d.name + ".service" }

// unit returns a daemon's unit. The daemon runs as root, which owns the folder, without root's capabilities.
func (s *Site) unit(d daemon) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s[Unit]\nDescription=Millrace %s (millrace up)\n", unitHead, d.what)
	kind := "exec"
	if d.name == "node" {
		kind = "notify"
		fmt.Fprintf(&b, "Wants=%[1]s\nAfter=%[1]s\n", unitName(s.controlDaemon()))
	}
	words := make([]string, 0, 1+len(d.args))
	for _, w := range append([]string{s.o.Program}, d.args...) {
		words = append(words, unitWord(w))
	}
	fmt.Fprintf(&b, "\n[Service]\nType=%s\nExecStart=%s\nRestart=on-failure\nRestartSec=1\nTimeoutStopSec=%d\n"+
		"UMask=0077\nLimitNOFILE=65536\n",
		kind, strings.Join(words, " "), int(stopTime/time.Second))
	fmt.Fprintf(&b, "CapabilityBoundingSet=\nNoNewPrivileges=yes\nPrivateTmp=yes\nProtectSystem=strict\n"+
		"ReadWritePaths=%s\nProtectKernelModules=yes\nProtectKernelTunables=yes\nProtectControlGroups=yes\n"+
		"RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\nRestrictSUIDSGID=yes\nLockPersonality=yes\n",
		unitWord(s.o.Dir))
	b.WriteString("\n[Install]\nWantedBy=multi-user.target\n")
	return b.Bytes()
}

// unitWord quotes a word of a unit's command.
func unitWord(w string) string {
	w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(w)
	if strings.ContainsAny(w, " \t'\"") {
		return `"` + w + `"`
	}
	return w
}

// Install makes systemd run the daemons, now and after each start of the machine, and waits until the node is ready.
func (s *Site) Install(ctx context.Context, sd Systemd) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if !s.rec.Systemd {
		if err := s.Stop(); err != nil { // those that an earlier up runs by itself
			return err
		}
		s.Steps = removeSteps(s.Steps, Absent)
		s.rec.Systemd = true
		if err := s.save(); err != nil {
			return err
		}
	}
	for _, d := range s.daemons() {
		name := unitName(d)
		path := filepath.Join(sd.Units, name)
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil && !bytes.HasPrefix(have, []byte(unitHead)) {
			return fmt.Errorf("unit %s: %w: move it away", path, ErrForeign)
		}
		want, did := s.unit(d), There
		if !bytes.Equal(have, want) {
			if did = Made; len(have) > 0 {
				did = Repaired
			}
			if err := wholefile.Write(path, want); err != nil {
				return err
			}
			if err := os.Chmod(path, 0o644); err != nil {
				return err
			}
			if err := sd.Call(ctx, "daemon-reload"); err != nil {
				return fmt.Errorf("%w: %w", ErrDaemon, err)
			}
		}
		s.did(did, "unit "+name, "%s", path)
		switch active := sd.Call(ctx, "is-active", "--quiet", name) == nil; {
		case active && did == There && !s.renewed:
			s.did(Runs, d.what, "https://%s, systemctl status %s", d.addr, name)
		default:
			if !active {
				if err := checkVacant(d); err != nil {
					return err
				}
			}
			for _, args := range [][]string{{"enable", name}, {"restart", name}} {
				if err := sd.Call(ctx, args...); err != nil {
					return fmt.Errorf("%w: %s: %w: journalctl -u %s says more", ErrDaemon, d.what, err, name)
				}
			}
			s.did(Started, d.what, "https://%s, journalctl -u %s", d.addr, name)
		}
		if err := s.waitReady(ctx, d, nil); err != nil {
			return err
		}
	}
	return nil
}

// uninstall ends the units and removes them.
func (s *Site) uninstall(sd Systemd) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*stopTime)
	defer cancel()
	list := s.daemons()
	for i := len(list) - 1; i >= 0; i-- {
		name := unitName(list[i])
		path := filepath.Join(sd.Units, name)
		have, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			s.did(Absent, "unit "+name, "%s", path)
			continue
		}
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(have, []byte(unitHead)) {
			return fmt.Errorf("unit %s: %w: it is left alone", path, ErrForeign)
		}
		if err := sd.Call(ctx, "disable", "--now", name); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDaemon, list[i].what, err)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		s.did(Stopped, "unit "+name, "%s", path)
	}
	if err := sd.Call(ctx, "daemon-reload"); err != nil {
		return fmt.Errorf("%w: %w", ErrDaemon, err)
	}
	s.rec.Systemd = false
	return s.save()
}
