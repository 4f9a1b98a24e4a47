package fleet

import (
	"fmt"
	"math"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// submitter names the machine whose files a submission describes. No node has this name.
const submitter = "the submitter's machine"

// selectOwnFiles does what Select does among files of the submitter's machine. No drive holds the selected partitions.
// A partition that matches, that only a dead node holds and that is not among the files is an error, as for Select.
func (f *Fleet) selectOwnFiles(patterns, exclude []string, own *apiv1.OwnFiles) (*Dataset, error) {
	if err := checkOwnFiles(own); err != nil {
		return nil, fmt.Errorf("%w: own files: %w", ErrSelect, err)
	}
	n := &node{alive: true, whole: true, partition: map[string]*apiv1.Partition{}}
	files := &apiv1.Drive{Name: "files", State: "ready"}
	for _, p := range own.Partitions {
		n.partition[p.Name] = p
		files.Partitions = append(files.Partitions, p.Name)
	}
	n.status = &apiv1.NodeStatus{Name: submitter, Drives: []*apiv1.Drive{files}, Partitions: own.Partitions,
		Schemas: own.Schemas}
	machine := New(f.o)
	machine.nodes[submitter] = n
	s, err := machine.selectAll(patterns, exclude, nil, nil)
	if err != nil || s == nil {
		return nil, err
	}
	if err := f.missing(n.partition, patterns, exclude); err != nil {
		return nil, err
	}
	clear(s.Holders)
	return s, nil
}

// checkOwnFiles checks what a submitter's description of files has beside the fields that a manifest checks.
func checkOwnFiles(own *apiv1.OwnFiles) error {
	if len(own.Partitions) > MaxPartitions || len(own.Schemas) > MaxPartitions {
		return fmt.Errorf("%d partitions with %d schemas, at most %d of each", len(own.Partitions), len(own.Schemas),
			MaxPartitions)
	}
	for i, p := range own.Partitions {
		if p == nil {
			return fmt.Errorf("partition %d is empty", i)
		}
	}
	for i, s := range own.Schemas {
		if s == nil {
			return fmt.Errorf("schema %d is empty", i)
		}
		for column, n := range s.MeanLength {
			if !(n >= 0) || math.IsInf(n, 1) {
				return fmt.Errorf("column %.80q: a mean length of %v", column, n)
			}
		}
	}
	return nil
}
