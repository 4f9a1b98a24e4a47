package fleet

import (
	"crypto/sha256"
	"fmt"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// schemaGroup is the partitions of a data set that have one schema.
type schemaGroup struct {
	digest     []byte
	partitions []string
}

// groupBySchema returns the partitions of a data set by schema, in the order of their names: a schema comes where its
// first partition does.
func groupBySchema(s *Dataset, found map[string]*apiv1.Partition) []schemaGroup {
	var groups []schemaGroup
	places := map[string]int{}
	for i := range s.Manifest.Partitions {
		name := s.Manifest.Partitions[i].Name
		digest := found[name].Schema
		at, ok := places[string(digest)]
		if !ok {
			at = len(groups)
			places[string(digest)] = at
			groups = append(groups, schemaGroup{digest: digest})
		}
		groups[at].partitions = append(groups[at].partitions, name)
	}
	return groups
}

// unifySchemas sets the columns of a data set, whose partitions were found on nodes: those of its partitions' schemas,
// unified.
func (f *Fleet) unifySchemas(s *Dataset, found map[string]*apiv1.Partition) error {
	groups := groupBySchema(s, found)
	if len(groups) == 1 {
		var err error
		s.Schema, s.MeanLength = groups[0].digest, f.meanLength(groups[0].digest)
		s.Columns, s.Malformed, err = f.columns(groups[0].digest)
		return err
	}
	var union columntypes.Union
	s.Several, s.MeanLength = true, map[string]float64{}
	all := sha256.New()
	rows := float64(0)
	for i, g := range groups {
		columns, malformed, err := f.columns(g.digest)
		if err != nil {
			return fmt.Errorf("partition %s: %w", g.partitions[0], err)
		}
		before := union.Columns()
		if len(before) > 0 && len(columns) > 0 && before[0].Source != columns[0].Source || i > 0 && malformed != s.Malformed {
			return fmt.Errorf("%s and %s are of different formats, or their malformed rows are treated differently: "+
				"choose by patterns partitions of one format", groups[0].partitions[0], g.partitions[0])
		}
		union.Add(g.partitions, columns)
		s.Malformed = malformed
		all.Write(g.digest)
		groupRows := float64(0)
		for _, name := range g.partitions {
			groupRows += float64(found[name].Rows)
		}
		for column, mean := range f.meanLength(g.digest) {
			s.MeanLength[column] += mean * groupRows
		}
		rows += groupRows
	}
	for column := range s.MeanLength {
		s.MeanLength[column] /= max(rows, 1)
	}
	s.Schema, s.Columns = all.Sum(nil), union.Columns()
	return nil
}

// FollowColumns unifies the data set's columns with those of an earlier data set of the same job, which come first:
// the new partitions may lack columns of the job, and have others.
func (s *Dataset) FollowColumns(earlier *Dataset) {
	var union columntypes.Union
	union.Add(partitionNames(earlier), earlier.Columns)
	union.Add(partitionNames(s), s.Columns)
	s.Columns, s.Several = union.Columns(), true
}

// partitionNames returns the names of a data set's partitions.
func partitionNames(s *Dataset) []string {
	names := make([]string, len(s.Manifest.Partitions))
	for i := range names {
		names[i] = s.Manifest.Partitions[i].Name
	}
	return names
}
