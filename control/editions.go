package control

import (
	"fmt"
	"reflect"

	"github.com/millrace/millrace/control/fleet"
)

// findPartitions looks for partitions that nodes hold and the job does not have yet.
func (j *job) findPartitions(f *fleet.Fleet, mostSplits int) {
	g, err := j.appeared(f, mostSplits)
	switch {
	case err != nil:
		j.PartitionsMissing(err.Error())
	case g == nil:
		j.PartitionsMissing("")
	default:
		j.editions[g.Number] = g
		j.PartitionsFound(g.Digest)
	}
}

// appeared makes an edition of the matching partitions that no earlier edition had. It returns nil if there are none.
func (j *job) appeared(f *fleet.Fleet, mostSplits int) (*edition, error) {
	exclude := append([]string(nil), j.spec.Exclude...)
	data, err := f.SelectNew(j.spec.Partitions, exclude, j.hadPartition)
	if err != nil || data == nil {
		return nil, err
	}
	latest := j.latest()
	other := func(why string) error {
		return fmt.Errorf("new partitions (%s, ...) have other columns than the job's%s: exclude them, or submit a job "+
			"for them",
			data.Manifest.Partitions[0].Name, why)
	}
	same := string(data.Schema) == string(latest.data.Schema)
	if !same {
		data.FollowColumns(latest.data)
	}
	number, first := j.NextEdition()
	g, err := newEdition(j, data, number, first)
	switch {
	case same:
	case err != nil:
		return nil, other(": " + err.Error())
	case !reflect.DeepEqual(g.schema, latest.schema):
		return nil, other("")
	}
	if err == nil {
		err = checkPlan(j, g, mostSplits)
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
