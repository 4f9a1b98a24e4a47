package workload

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/wholefile"
)

// partitionFile is a partition that is being written. It has its name when all partitions are whole.
type partitionFile struct {
	*bufio.Writer
	f    *os.File
	path string
}

// partitionName is the name of partition i.
func partitionName(i int) string { return fmt.Sprintf("part-%05d.parquet", i) }

// removeBeyond removes the partitions of an earlier, larger data set whose first ones were overwritten: a folder is
// read as one data set, and their rows would be among the new ones.
func removeBeyond(folder string, partitions int) error {
	there, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range there {
		var i int
		if _, err := fmt.Sscanf(e.Name(), "part-%d.parquet", &i); err != nil || partitionName(i) != e.Name() {
			continue // not a name of this package
		}
		if i >= partitions {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return fmt.Errorf("remove what was overwritten: %w", err)
			}
		}
	}
	return nil
}

// writePartitions has write make the partitions of a folder, and gives them their names when it has made all of them.
// If it fails, the folder holds what it held before. With overwrite, partitions that were there are replaced, and those
// with higher numbers are removed.
func writePartitions(folder string, overwrite bool, write func(*wholefile.Set) ([]File, error)) (_ []File, err error) {
	set, err := wholefile.NewSet(folder, overwrite)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	files, err := write(set)
	if err != nil {
		return nil, err
	}
	if err := set.Commit(); err != nil {
		return nil, err
	}
	if overwrite {
		if err := removeBeyond(folder, len(files)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// createPartition starts partition i of a set.
func createPartition(set *wholefile.Set, i int) (*partitionFile, error) {
	f, err := set.Create(partitionName(i))
	if err != nil {
		return nil, err
	}
	return &partitionFile{Writer: bufio.NewWriterSize(f, 1<<20), f: f, path: set.Path(partitionName(i))}, nil
}

// finish ends a partition; failed is the error of its writer.
func (p *partitionFile) finish(rows int64, groups []int64, failed error) (File, error) {
	var size int64
	err := failed
	if err == nil {
		err = p.Flush()
	}
	if err == nil {
		err = p.f.Sync()
	}
	if err == nil {
		var info os.FileInfo
		if info, err = p.f.Stat(); err == nil {
			size = info.Size()
		}
	}
	if closed := p.f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", p.path, err)
	}
	return File{Path: p.path, Rows: rows, Bytes: size, RowGroups: groups}, nil
}
