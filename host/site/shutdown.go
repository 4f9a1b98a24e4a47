package site

import (
	"errors"
	"fmt"
	"os"
)

// Stop ends the daemons, the node before the control plane. Down ends those that systemd runs.
func (s *Site) Stop() error {
	list := s.daemons()
	for i := len(list) - 1; i >= 0; i-- {
		ran, err := s.endDaemon(list[i])
		if err != nil {
			return err
		}
		did := Absent
		if ran {
			did = Stopped
		}
		s.did(did, list[i].what, "https://%s", list[i].addr)
	}
	return nil
}

// Down ends the daemons, whether systemd runs them or not, and removes the contexts. Data stays.
func (s *Site) Down(sd Systemd) error {
	var err error
	if s.rec.Systemd {
		err = s.uninstall(sd)
	} else {
		err = s.Stop()
	}
	if err != nil {
		return err
	}
	return s.removeContexts()
}

// Purge removes everything that the site made, and its folder if nothing else is in it. The daemons must have ended.
func (s *Site) Purge() error {
	for _, d := range s.daemons() {
		if p, err := s.runningProcess(d); err != nil {
			return err
		} else if p != nil {
			return fmt.Errorf("%w: %s runs still, as process %d", ErrDaemon, d.what, p.PID)
		}
	}
	for _, name := range []string{"pki", "drives", "control", "node", "run", "log", "node.yaml", recordFile, lockName} {
		if err := os.RemoveAll(s.path(name)); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		s.did(Removed, "data", "all but %s in %s, which millrace up did not make", left[0].Name(), s.o.Dir)
		return nil
	}
	s.did(Removed, "data", "%s", s.o.Dir)
	if err := os.Remove(s.o.Dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
