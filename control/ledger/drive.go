package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// DriveID names a drive in the cluster.
type DriveID struct{ Node, Name string }

// String returns node/name.
func (d DriveID) String() string { return d.Node + "/" + d.Name }

func (d DriveID) compare(o DriveID) int {
	if c := strings.Compare(d.Node, o.Node); c != 0 {
		return c
	}
	return strings.Compare(d.Name, o.Name)
}

// Drive is a drive that takes work.
type Drive struct {
	ID      DriveID
	Streams int // mini-batch sequences that it makes at once; at least 1, unless Reach is Source
	// Partitions are those that the drive holds, named as in Epoch.Partitions. If Reach is Any, the worker has them in
	// files of its own machine, where no other worker reads them.
	Partitions []string
	Draining   bool // no lease is granted on the drive, as after DrainDrive
	Reach      Reach
	Compute    Compute
	Serves     *RankRef // the only rank that a worker of reach Any makes splits for; nil: every rank
}

type driveState uint8

const (
	driveReady driveState = iota
	driveUnknown
	driveDead
)

// drive is a drive with its state.
type drive struct {
	id         DriveID
	streams    int
	partitions map[string]struct{}
	state      driveState
	draining   bool
	why        string    // dead
	since      time.Time // unknown
	leases     []*lease  // fetched ones included
	busy       int       // streams in use
	round      uint64    // the last round of offers in which it was offered
	reach      Reach
	compute    Compute
	serves     *RankRef
	trouble

	// Start-time fair queueing: a grant has a start tag, the later of the drive's virtual time and the job's last
	// finish tag. Its finish tag is the start tag plus rows over weight. The grant with the least start tag goes first;
	// its start tag becomes the drive's virtual time.
	virtual float64
	finish  map[*job]float64
}

// grantable reports whether leases may be granted on the drive.
func (d *drive) grantable() bool {
	return d.state == driveReady && !d.draining && !d.aside && d.reach != Source
}

// freeStreams counts the drive's streams that no lease uses.
func (d *drive) freeStreams() int { return max(d.streams-d.busy, 0) }

// lessLoaded orders drives by free streams, then by name.
func (d *drive) lessLoaded(o *drive) bool {
	if d.freeStreams() != o.freeStreams() {
		return d.freeStreams() > o.freeStreams()
	}
	return d.id.compare(o.id) < 0
}

// startTag is the start tag of the next grant of a job.
func (d *drive) startTag(j *job) float64 { return max(d.virtual, d.finish[j]) }

// PutDrive adds a drive, or replaces its description; the drive is alive from then on. The error wraps ErrArgument.
func (l *Ledger) PutDrive(p Drive, now time.Time) error {
	switch {
	case p.Streams < 1 && p.Reach != Source:
		return fmt.Errorf("%w: drive %v: %d streams, want at least 1", ErrArgument, p.ID, p.Streams)
	case p.Reach > Source || p.Compute > OnCard:
		return fmt.Errorf("%w: drive %v: reach %d, compute %d", ErrArgument, p.ID, p.Reach, p.Compute)
	case p.Serves != nil && p.Reach != Any:
		return fmt.Errorf("%w: drive %v serves one rank and is not of any reach", ErrArgument, p.ID)
	}
	d := l.drive(p.ID)
	if d == nil {
		d = l.addDrive(p.ID)
	}
	adopted := d.state == driveUnknown
	if d.reach == Any && (p.Reach != Any || !sameRank(d.serves, p.Serves)) {
		for _, j := range l.jobs {
			j.delist(d) // the ID names another worker now
		}
	}
	d.state, d.why, d.streams, d.draining = driveReady, "", p.Streams, p.Draining
	if (d.reach == Any) != (p.Reach == Any) {
		l.countActive(d, p.Reach == Any)
	}
	changed := d.reach != p.Reach || d.compute != p.Compute // placements leave out drives that a job does not employ
	d.reach, d.compute, d.serves = p.Reach, p.Compute, p.Serves
	l.placementVersion++
	for adopted && d.busy > d.streams { // leases were adopted for it from more than one earlier leader
		i := len(d.leases) - 1
		for d.leases[i].Fetched {
			i--
		}
		l.revoke(d.leases[i], "the drive has fewer streams than leases")
	}
	if changed || !sameNames(d.partitions, p.Partitions) {
		d.partitions = make(map[string]struct{}, len(p.Partitions))
		for _, name := range p.Partitions {
			d.partitions[name] = struct{}{}
		}
		for _, j := range l.jobs {
			for _, e := range j.epochs {
				e.updateHolder(d)
			}
		}
	}
	l.schedule(now)
	return nil
}

// countActive adds a drive to the active workers of reach Any of the jobs that the drive works for, or removes it
// from them: an adopted lease may be of a worker whose reach was not known.
func (l *Ledger) countActive(d *drive, worker bool) {
	for _, j := range l.jobs {
		switch {
		case j.streams[d] == 0:
		case worker:
			j.activeWorkers++
		default:
			j.activeWorkers--
		}
	}
}

func sameRank(a, b *RankRef) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func sameNames(has map[string]struct{}, names []string) bool {
	if len(has) != len(names) {
		return false
	}
	for _, n := range names {
		if _, ok := has[n]; !ok {
			return false
		}
	}
	return true
}

func (l *Ledger) addDrive(id DriveID) *drive {
	d := &drive{id: id, finish: make(map[*job]float64)}
	i, _ := slices.BinarySearchFunc(l.drives, id, func(o *drive, id DriveID) int { return o.id.compare(id) })
	l.drives = slices.Insert(l.drives, i, d)
	return d
}

// drive finds a drive, or returns nil.
func (l *Ledger) drive(id DriveID) *drive {
	if i, ok := slices.BinarySearchFunc(l.drives, id, func(o *drive, id DriveID) int { return o.id.compare(id) }); ok {
		return l.drives[i]
	}
	return nil
}

// DrainDrive stops, or resumes, granting on a drive. The drive's leases end by themselves. The error wraps
// ErrUnknown.
func (l *Ledger) DrainDrive(id DriveID, drain bool, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	d.draining = drain
	l.placementVersion++
	l.schedule(now)
	return nil
}

// LoseDrive records that a drive or its node is dead. It revokes the drive's leases except those that were fetched.
// PutDrive revives the drive. The error wraps ErrUnknown.
func (l *Ledger) LoseDrive(id DriveID, why string, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	l.loseDrive(d, why)
	l.schedule(now)
	return nil
}

func (l *Ledger) loseDrive(d *drive, why string) {
	d.state, d.why = driveDead, why
	l.placementVersion++
	for _, j := range l.jobs {
		j.delist(d)
	}
	for _, le := range slices.Clone(d.leases) {
		if !le.Fetched {
			l.revoke(le, fmt.Sprintf("drive %v is lost: %s", d.id, why))
		}
	}
}

// RemoveDrive does what LoseDrive does, and forgets the drive. The error wraps ErrUnknown.
func (l *Ledger) RemoveDrive(id DriveID, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	l.loseDrive(d, "it was removed")
	for _, le := range d.leases { // fetched: they need no drive
		le.drive = nil
	}
	for _, j := range l.jobs {
		for _, e := range j.epochs {
			e.removeHolder(d)
		}
		for _, r := range j.ranks {
			delete(r.avoid, d)
		}
		delete(j.streams, d)
		j.running = slices.DeleteFunc(j.running, func(o *drive) bool { return o == d })
	}
	l.drives = slices.DeleteFunc(l.drives, func(o *drive) bool { return o == d })
	l.schedule(now)
	return nil
}
