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
	ID         DriveID
	Slots      int      // leases at once: its streams; at least 1
	Partitions []string // what it holds, in the words of Epoch.Partitions
	Draining   bool     // nothing is granted on it, as after DrainDrive
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
	slots      int
	partitions map[string]struct{}
	state      driveState
	draining   bool
	why        string    // dead
	since      time.Time // unknown
	leases     []*lease  // fetched ones included
	busy       int       // slots taken
	round      uint64    // of offers, in which it was offered last

	// Start-time fair queueing: what a job is granted has a start tag, the later of the drive's virtual time and the
	// job's last finish tag, which is that plus rows over weight. The least start tag goes first, and is the virtual
	// time then.
	virtual float64
	finish  map[*job]float64
}

// ready reports whether the drive may be granted.
func (d *drive) ready() bool { return d.state == driveReady && !d.draining }

// free counts its slots that are not taken.
func (d *drive) free() int { return max(d.slots-d.busy, 0) }

// lessLoaded orders drives by free slots, then by name.
func (d *drive) lessLoaded(o *drive) bool {
	if d.free() != o.free() {
		return d.free() > o.free()
	}
	return d.id.compare(o.id) < 0
}

// tag is the start tag of what a job would be granted next.
func (d *drive) tag(j *job) float64 { return max(d.virtual, d.finish[j]) }

// PutDrive adds a drive, or says again what it is and holds; it is alive with that. The error wraps ErrArgument.
func (l *Ledger) PutDrive(p Drive, now time.Time) error {
	if p.Slots < 1 {
		return fmt.Errorf("%w: drive %v: %d slots, want at least 1", ErrArgument, p.ID, p.Slots)
	}
	d := l.drive(p.ID)
	if d == nil {
		d = l.addDrive(p.ID)
	}
	adopted := d.state == driveUnknown
	d.state, d.why, d.slots, d.draining = driveReady, "", p.Slots, p.Draining
	for adopted && d.busy > d.slots { // leases were adopted for it from more than one earlier leader
		i := len(d.leases) - 1
		for d.leases[i].Fetched {
			i--
		}
		l.comeBack(d.leases[i], "the drive has fewer slots than leases")
	}
	if !sameNames(d.partitions, p.Partitions) {
		d.partitions = make(map[string]struct{}, len(p.Partitions))
		for _, name := range p.Partitions {
			d.partitions[name] = struct{}{}
		}
		for _, j := range l.jobs {
			for _, e := range j.epochs {
				e.hold(d)
			}
		}
	}
	l.schedule(now)
	return nil
}

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

// DrainDrive stops, or resumes, granting on a drive; what is out ends by itself. The error wraps ErrUnknown.
func (l *Ledger) DrainDrive(id DriveID, drain bool, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	d.draining = drain
	l.schedule(now)
	return nil
}

// LoseDrive says that a drive or its node is dead: its leases, but those fetched, come back and are revoked. PutDrive
// revives it. The error wraps ErrUnknown.
func (l *Ledger) LoseDrive(id DriveID, why string, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	l.lose(d, why)
	l.schedule(now)
	return nil
}

func (l *Ledger) lose(d *drive, why string) {
	d.state, d.why = driveDead, why
	for _, le := range slices.Clone(d.leases) {
		if !le.Fetched {
			l.comeBack(le, fmt.Sprintf("drive %v is lost: %s", d.id, why))
		}
	}
}

// RemoveDrive is LoseDrive, and forgets the drive. The error wraps ErrUnknown.
func (l *Ledger) RemoveDrive(id DriveID, now time.Time) error {
	d := l.drive(id)
	if d == nil {
		return fmt.Errorf("%w: drive %v", ErrUnknown, id)
	}
	l.lose(d, "it was removed")
	for _, le := range d.leases { // fetched: they need no drive
		le.drive = nil
	}
	for _, j := range l.jobs {
		for _, e := range j.epochs {
			e.leave(d)
		}
		for _, r := range j.ranks {
			delete(r.avoid, d)
		}
		delete(j.slots, d)
		j.running = slices.DeleteFunc(j.running, func(o *drive) bool { return o == d })
	}
	l.drives = slices.DeleteFunc(l.drives, func(o *drive) bool { return o == d })
	l.schedule(now)
	return nil
}
