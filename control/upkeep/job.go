package upkeep

import (
	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// Job is what a Keeper needs to know of a job that has not ended.
type Job struct {
	ID           string
	Ranks        uint32
	Makers       ledger.Makers
	NeedsWorkers bool // Workers of reach Any that serve every rank are prepared for the job.
	// Editions are those that nodes are to be prepared for, and passes over the columns of filters. A job that has
	// given its room away has none.
	Editions []Edition
}

// Edition is what nodes are prepared for.
type Edition struct {
	Digest   dataset.Digest
	Manifest *dataset.Manifest
	Begun    bool // Nodes have been asked to prepare the edition. Nodes that join are asked, too.
	Pass     bool // The edition is a pass over the columns of a filter: no lease is granted for it.
}

// employsWorker reports whether a worker of reach Any may make splits of the job.
func (j *Job) employsWorker(d *Drive) bool {
	return j.Makers.AllowWorkers() && (d.Serves == nil || d.Serves.Job == j.ID && d.Serves.Rank < j.Ranks)
}

// jobTable finds jobs by the digests of their editions.
type jobTable struct {
	jobs  []Job
	users map[dataset.Digest]int // the place in jobs of the first job that uses the digest
}

func newJobTable(jobs []Job) jobTable {
	t := jobTable{jobs: jobs, users: make(map[dataset.Digest]int, len(jobs))}
	for i := range jobs {
		for _, e := range jobs[i].Editions {
			if _, ok := t.users[e.Digest]; !ok {
				t.users[e.Digest] = i
			}
		}
	}
	return t
}

// user returns the ID of the first job that uses a digest, or "" if no job uses it.
func (t *jobTable) user(d dataset.Digest) string {
	if i, ok := t.users[d]; ok {
		return t.jobs[i].ID
	}
	return ""
}
