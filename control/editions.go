package control

import (
	"fmt"
	"reflect"
)

// findPartitions looks for partitions that a job does not have yet. l.mu is held.
func (c *conductor) findPartitions() {
	g, err := c.appeared()
	switch {
	case err != nil:
		c.job.PartitionsMissing(err.Error())
	case g == nil:
		c.job.PartitionsMissing("")
	default:
		c.job.editions[g.Number] = g
		c.job.PartitionsFound(g.Digest)
	}
}

// appeared makes an edition of the matching partitions that no earlier edition had. It returns nil if there are
// none. l.mu is held.
func (c *conductor) appeared() (*edition, error) {
	exclude := append([]string(nil), c.job.spec.Exclude...)
	data, err := c.fleet.SelectNew(c.job.spec.Partitions, exclude, c.job.hadPartition)
	if err != nil || data == nil {
		return nil, err
	}
	latest := c.job.latest()
	other := func(why string) error {
		return fmt.Errorf("new partitions (%s, ...) have other columns than the job's%s: exclude them, or submit a job "+
			"for them",
			data.Manifest.Partitions[0].Name, why)
	}
	same := string(data.Schema) == string(latest.data.Schema)
	if !same {
		data.FollowColumns(latest.data)
	}
	number, first := c.job.NextEdition()
	g, err := newEdition(c.job, data, number, first)
	switch {
	case same:
	case err != nil:
		return nil, other(": " + err.Error())
	case !reflect.DeepEqual(g.schema, latest.schema):
		return nil, other("")
	}
	if err == nil {
		err = checkPlan(c.job, g, c.o.MaxSplits)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// hadPartition reports whether a partition belongs or belonged to an edition of the job.
func (j *job) hadPartition(name string) bool {
	if _, ok := j.formerly[name]; ok {
		return true
	}
	for _, g := range j.Editions() {
		if j.editions[g.Number].data.Manifest.Find(name) >= 0 {
			return true
		}
	}
	return false
}
