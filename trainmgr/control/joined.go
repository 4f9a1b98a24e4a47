package control

import (
	"time"

	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/fleet"
	"github.com/millrace/millrace/trainmgr/control/record"
)

// measureAgain is how long to leave a drive alone whose P could not be measured.
const measureAgain = time.Minute

// measureJoined asks for P of a drive that has joined since the job began, one at a time: how many drives the job wants is decided
// by the mean. A node that knows P of the pipeline answers at once; else the drive is measured while it may work already,
// and counts for a little less than it can do alone.
func (l *leader) measureJoined(j *job) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Phase() != record.Running || j.measuring {
		return
	}
	v, err := l.ledger.Status(j.ID, now)
	if err != nil {
		return // nothing was begun
	}
	g := j.generationOf(v.Epoch)
	if g == nil {
		return
	}
	at, ok := l.unmeasuredDrive(j, g, now)
	if !ok {
		return
	}
	j.measuring = true
	l.wg.Go(func() {
		rows, err := l.measure(at.Node, at.Drive, g.Digest)
		l.mu.Lock()
		defer l.mu.Unlock()
		j.measuring = false
		if err != nil {
			if j.unmeasured == nil {
				j.unmeasured = map[string]time.Time{}
			}
			j.unmeasured[driveName(at)] = time.Now()
			l.logger.Warn("measure P", "job", j.ID, "node", at.Node, "drive", at.Drive, "error", err)
			return
		}
		l.joined(j, g, at, rows)
	})
}

// unmeasuredDrive finds a drive that works for a generation and whose P is not known. l.mu is held.
func (l *leader) unmeasuredDrive(j *job, g *generation, now time.Time) (fleet.Place, bool) {
	p := j.State().P
	for _, holders := range g.holders(l.fleet) {
		for _, h := range holders {
			a, name := l.nodes[h.Node], driveName(h)
			failed, tried := j.unmeasured[name]
			if p[name] > 0 || a == nil || !a.prepared[g.Digest] || a.drives[h.Drive] != driveReady || tried && now.Sub(failed) < measureAgain {
				continue
			}
			return h, true
		}
	}
	return fleet.Place{}, false
}

// joined takes P of a drive that joined, and says anew how many drives T wants. How many run the autoscaler decides. l.mu is held.
func (l *leader) joined(j *job, g *generation, at fleet.Place, rows float64) {
	if j.Phase().Ended() {
		return
	}
	j.DriveMeasured(driveName(at), rows)
	delete(j.unmeasured, driveName(at))
	l.logger.Info("measured P", "job", j.ID, "node", at.Node, "drive", at.Drive, "p_rows_per_second", rows, "joined", true)
	st := j.State()
	if a, err := allocation.Allocate(st.T, l.loads(g, st.P), int(j.spec.MaxDrives)); err == nil && st.T > 0 {
		st.Allocation.Wanted, st.Allocation.ExpectedStall = a.Wanted, a.ExpectedStall
		j.Allocated(st.Allocation)
	}
	j.poke()
}
