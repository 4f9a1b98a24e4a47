package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/wholefile"
)

// process is the content of run/NAME.pid: enough to recognize the process after its id was given to another.
type process struct {
	PID     int      `json:"pid"`
	Began   string   `json:"began"` // as the system reports it: the boot, and the time since
	Command []string `json:"command"`
}

// daemon is one of the site's two programs.
type daemon struct {
	name string // name begins the names of its files.
	what string // in words
	args []string
	addr string
}

// daemons returns the daemons in the order in which they start. They stop in the opposite order.
func (s *Site) daemons() []daemon {
	return []daemon{s.controlDaemon(), s.nodeDaemon()}
}

// nodeDaemon describes the storage node.
func (s *Site) nodeDaemon() daemon {
	return daemon{"node", "node " + nodeName, []string{"node", "run", "--config", s.path("node.yaml")}, s.rec.Node}
}

// runningProcess reads a daemon's pid file. It returns nil if the daemon does not run: there is no pid file, or its
// process is gone, or another process has the id by now.
func (s *Site) runningProcess(d daemon) (*process, error) {
	path := s.path("run", d.name+".pid")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p process
	if err := json.Unmarshal(b, &p); err != nil || p.PID <= 1 || len(p.Command) == 0 {
		return nil, fmt.Errorf("%s does not say which process it is of: if no millrace runs here remove it", path)
	}
	now, err := lookUp(p.PID)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", p.PID, err)
	}
	if now == nil || now.Began != p.Began || !slices.Equal(now.Command, p.Command) {
		return nil, nil
	}
	return &p, nil
}

// writePID writes a daemon's pid file.
func (s *Site) writePID(d daemon, pid int) error {
	p, err := lookUp(pid)
	if err == nil && p == nil {
		err = errors.New("it has ended already")
	}
	if err != nil {
		return err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return wholefile.Write(s.path("run", d.name+".pid"), append(b, '\n'))
}

// stopTime is how long a daemon may take to end: a node lets open splits end for a minute (drain_time).
const stopTime = 90 * time.Second

// endDaemon tells a daemon to end, and waits until it has. It returns false if the daemon did not run.
func (s *Site) endDaemon(d daemon) (bool, error) {
	p, err := s.runningProcess(d)
	if err != nil {
		return false, err
	}
	if p == nil {
		return false, removeFiles(s.path("run", d.name+".pid"))
	}
	if err := terminate(p.PID); err != nil {
		return false, fmt.Errorf("%w: %s: tell process %d to end: %w", ErrDaemon, d.what, p.PID, err)
	}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if p, err = s.runningProcess(d); err != nil {
			return false, err
		}
		if p == nil {
			return true, removeFiles(s.path("run", d.name+".pid"))
		}
		if time.Since(begin) > stopTime {
			return false, fmt.Errorf("%w: %s: process %d was asked to end %v ago and still runs: kill -9 %d ends it "+
				"at once", ErrDaemon, d.what, p.PID, stopTime, p.PID)
		}
	}
}
