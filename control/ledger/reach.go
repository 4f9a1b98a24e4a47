package ledger

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// Reach selects the splits that a worker can make.
type Reach uint8

// The reaches.
const (
	Held   Reach = iota // splits of the partitions that the worker holds
	Any                 // every split of a partition that can be read anywhere
	Source              // no split: other workers read its partitions
)

// Compute is the processor that computes a holder's mini-batches.
type Compute uint8

// What computes.
const (
	OnDrive Compute = iota // the drive itself, beside its flash
	OnCPU                  // the node's cores
	OnCard                 // an accelerator in the node, which has no flash
)

// Makers selects the workers that make no split of a job. The zero value allows all of them.
type Makers uint8

// The workers that a job can exclude.
const (
	NoDrives Makers = 1 << iota // holders that are OnDrive
	NoCPUs                      // holders that are OnCPU
	NoCards                     // holders that are OnCard
	NoAny                       // workers of reach Any that serve every rank
	NoOwn                       // workers of reach Any that serve one rank alone

	allMakers = NoDrives | NoCPUs | NoCards | NoAny | NoOwn
)

// RankRef names a rank of a job.
type RankRef struct {
	Job  string
	Rank uint32
}

// AllWorkers is the argument of AllowWorkers that allows all enlisted workers of reach Any.
const AllWorkers = -1

// partnersOfRank is the least number of workers that one rank has among the workers that serve every rank.
const partnersOfRank = 4

// AllowHolders reports whether some holders are not excluded.
func (m Makers) AllowHolders() bool {
	const holders = NoDrives | NoCPUs | NoCards
	return m&holders != holders
}

// AllowWorkers reports whether some workers of reach Any are not excluded.
func (m Makers) AllowWorkers() bool {
	const workers = NoAny | NoOwn
	return m&workers != workers
}

// Allows reports whether a worker is not excluded.
func (m Makers) Allows(d Drive) bool { return m.allows(d.Reach, d.Compute, d.Serves != nil) }

func (m Makers) allows(reach Reach, compute Compute, own bool) bool {
	switch {
	case reach == Source:
		return false
	case reach == Any && own:
		return m&NoOwn == 0
	case reach == Any:
		return m&NoAny == 0
	}
	return m&(NoDrives<<compute) == 0
}

// employs reports whether a job lets a worker make its splits.
func (j *job) employs(d *drive) bool { return j.Makers.allows(d.reach, d.compute, d.serves != nil) }

// Enlist records whether a worker of reach Any is ready to make splits of a job, because it was prepared for the
// job. The worker stays enlisted until it is lost or removed. Its leases go on when it is no longer enlisted. The
// error wraps ErrUnknown or ErrArgument.
func (l *Ledger) Enlist(id string, worker DriveID, ready bool, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	d := l.drive(worker)
	switch {
	case d == nil:
		return fmt.Errorf("%w: worker %v", ErrUnknown, worker)
	case d.reach != Any:
		return fmt.Errorf("%w: job %s: drive %v holds its partitions: only workers of any reach are enlisted",
			ErrArgument, id, worker)
	case d.serves != nil && (d.serves.Job != id || int64(d.serves.Rank) >= int64(len(j.ranks))):
		return fmt.Errorf("%w: job %s: worker %v serves rank %d of job %s alone", ErrArgument, id, worker,
			d.serves.Rank, d.serves.Job)
	}
	if slices.Contains(j.enlisted, d) == ready {
		return nil
	}
	if ready {
		j.enlisted = append(j.enlisted, d)
	} else {
		j.delist(d)
	}
	l.placementVersion++
	l.schedule(now)
	return nil
}

// delist removes a worker from the enlisted workers of a job.
func (j *job) delist(d *drive) {
	j.enlisted = slices.DeleteFunc(j.enlisted, func(o *drive) bool { return o == d })
}

// AllowWorkers sets how many workers of reach Any make splits that holders of the job could make, beside the
// holders. 0 means that such workers make only the splits that no holder can make; AllWorkers means no bound.
func (l *Ledger) AllowWorkers(id string, workers int, now time.Time) error {
	j, err := l.findJob(id)
	if err != nil {
		return err
	}
	if workers < AllWorkers {
		return fmt.Errorf("%w: job %s: %d workers", ErrArgument, id, workers)
	}
	j.allowedWorkers = workers
	j.crewVersion = 0
	l.schedule(now)
	return nil
}

// crew is the workers of reach Any on which a job's ranks are granted pieces now. Each job has its own order: jobs
// begin with different workers, and a worker that leaves changes only the places of the workers behind it.
type crew struct {
	enlisted       []*drive
	allowedWorkers int
	crewVersion    uint64   // version of the ledger's placement from which shared and own were computed
	shared         []*drive // workers that serve every rank, as many as are allowed
	withFiles      []*drive // all workers that serve every rank and have partitions in files of their own machines
	own            map[uint32][]*drive
}

// refreshCrew finds the workers on which pieces can be granted.
func (j *job) refreshCrew(version uint64) {
	if j.crewVersion == version {
		return
	}
	j.crewVersion, j.shared, j.withFiles, j.own = version, nil, nil, nil
	for _, d := range j.enlisted {
		switch {
		case !d.grantable() || !j.employs(d):
		case d.serves != nil:
			if j.own == nil {
				j.own = map[uint32][]*drive{}
			}
			j.own[d.serves.Rank] = append(j.own[d.serves.Rank], d)
		default:
			j.shared = append(j.shared, d)
		}
	}
	slices.SortFunc(j.shared, func(a, b *drive) int {
		return cmp.Or(cmp.Compare(crewOrder(j.ID, a.id), crewOrder(j.ID, b.id)), a.id.compare(b.id))
	})
	for _, d := range j.shared {
		if len(d.partitions) > 0 {
			j.withFiles = append(j.withFiles, d)
		}
	}
	most := j.allowedWorkers
	switch {
	case most == 0:
		most = 1 // splits that no holder can make are granted even without an allowance
	}
	if most != AllWorkers && len(j.shared) > most {
		j.shared = j.shared[:most]
	}
}

// crewOrder is the place of a worker in a job's order of workers.
func crewOrder(job string, d DriveID) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s", job, d.Node, d.Name) // a hash takes every write
	return h.Sum64()
}
