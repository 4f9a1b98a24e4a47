package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
)

// localFile is a partition in a file of this machine.
type localFile struct {
	path string
	dataset.Partition
}

// LocalFiles are partitions in files of this machine, by name. A job's partition is read from its file if name,
// length and digest are those of the job's manifest, and from nodes and stores otherwise.
type LocalFiles map[string]localFile

// DescribeFiles describes files of this machine, by the names of files and folders and by patterns, for the submission
// of a job whose workers name the same files in Config.Local.
func DescribeFiles(ctx context.Context, patterns []string) (*apiv1.OwnFiles, error) {
	found, err := partitionfile.Resolver{}.Find(ctx, source.ParseLocations(patterns...), partitionfile.Parquet)
	if err != nil {
		return nil, err
	}
	inventory, err := host.DescribeFiles(ctx, found)
	if err != nil {
		return nil, err
	}
	return node.WireFiles(inventory)
}

// describeLocal reads the footers of the files that Config.Local names; none are nil.
func describeLocal(ctx context.Context, patterns []string) (files LocalFiles, err error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	found, err := partitionfile.Resolver{}.Find(ctx, source.ParseLocations(patterns...), partitionfile.Parquet)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	d, err := host.OpenFiles(ctx, filename.Locations(found),
		host.DriveOptions{Engine: host.EngineCPU, FileNames: filename.Names(found)})
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	files = LocalFiles{}
	for i, p := range d.Partitions() {
		files[p.Name] = localFile{found[i].Location.Name(), p.Describe()}
	}
	return files, nil
}

// places returns the places in a manifest of the partitions that files hold.
func (f LocalFiles) places(m *dataset.Manifest) (list []int) {
	if len(f) == 0 {
		return nil
	}
	for i, p := range m.Partitions {
		if _, ok := f.findFile(p); ok {
			list = append(list, i)
		}
	}
	return list
}

// findFile returns the path of the file that holds a partition of a job. It reports false if no file does.
func (f LocalFiles) findFile(want dataset.Partition) (path string, ok bool) {
	file, ok := f[want.Name]
	if !ok || file.Bytes != want.Bytes || file.Content != want.Content {
		return "", false
	}
	return file.path, true
}
