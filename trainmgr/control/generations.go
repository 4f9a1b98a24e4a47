package control

import (
	"fmt"
)

// findPartitions looks for partitions that a job does not have yet. l.mu is held.
func (l *leader) findPartitions(j *job) {
	g, err := l.appeared(j)
	switch {
	case err != nil:
		j.PartitionsMissing(err.Error())
	case g == nil:
		j.PartitionsMissing("")
	default:
		j.generations[g.Number] = g
		j.PartitionsFound(g.Digest)
	}
}

// appeared makes a generation of the partitions that match and were not there before; nil: there are none. l.mu is held.
func (l *leader) appeared(j *job) (*generation, error) {
	exclude := append([]string(nil), j.spec.Exclude...)
	data, err := l.fleet.SelectNew(j.spec.Partitions, exclude, j.hadPartition)
	if err != nil || data == nil {
		return nil, err
	}
	if string(data.Schema) != string(j.latest().data.Schema) {
		return nil, fmt.Errorf("new partitions (%s, ...) have other columns than the job's: exclude them, or submit a job for them",
			data.Manifest.Partitions[0].Name)
	}
	number, first := j.NextGeneration()
	g, err := newGeneration(j, data, number, first)
	if err == nil {
		err = checkPlan(j, g, l.o.MaxSplits)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// hadPartition reports whether a partition is, or was, of a generation of the job.
func (j *job) hadPartition(name string) bool {
	if _, ok := j.formerly[name]; ok {
		return true
	}
	for _, g := range j.Generations() {
		if j.generations[g.Number].data.Manifest.Find(name) >= 0 {
			return true
		}
	}
	return false
}
