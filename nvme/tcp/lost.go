package tcp

import (
	"errors"
	"time"

	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// lostWait bounds how long a Connect waits for the host's lost associations.
const lostWait = 5 * time.Second

var errStillRuns = errors.New("commands of the host's lost association still run")

// endLost ends the associations of a host with a subsystem that lost a connection, and waits until nothing of them
// runs. A host that lost a connection sends its commands again on a new association. What the old connections had
// received must not run after that: a write would replace the data of a later write to the same blocks. A connection
// counts as lost as soon as the host has closed it, even if commands are in its buffers that were not read yet.
func (t *Target) endLost(sub *controller.Subsystem, host controller.HostID) error {
	connections := map[*association][]*connection{}
	t.mu.Lock()
	for c := range t.conns {
		if a := c.association; a != nil && a.sub == sub && a.host == host {
			connections[a] = append(connections[a], c)
		}
	}
	t.mu.Unlock()
	lost := map[*association]bool{}
	for a, all := range connections {
		for _, c := range all {
			lost[a] = lost[a] || c.cutBy.Load() != nil || stream.ClosedByPeer(c.nc)
		}
		if !lost[a] {
			delete(lost, a)
			continue
		}
		for _, c := range all {
			c.cutConnection(nil)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	deadline := time.Now().Add(lostWait)
	wake := time.AfterFunc(lostWait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.quiet.Broadcast()
	})
	defer wake.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		runs := false
		for c := range t.conns {
			runs = runs || lost[c.association]
		}
		switch {
		case !runs:
			return nil
		case !time.Now().Before(deadline):
			return errStillRuns
		}
		t.quiet.Wait()
	}
}
