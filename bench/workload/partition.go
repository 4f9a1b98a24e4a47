package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// partitionFile is a partition that is being written: under another name until it is whole.
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

// createPartition starts partition i of a folder.
func createPartition(folder string, i int, overwrite bool) (*partitionFile, error) {
	path := filepath.Join(folder, partitionName(i))
	if _, err := os.Lstat(path); err == nil && !overwrite {
		return nil, fmt.Errorf("%s: %w: remove it or ask to overwrite", path, fs.ErrExist)
	}
	f, err := os.Create(path + ".partial")
	if err != nil {
		return nil, err
	}
	return &partitionFile{Writer: bufio.NewWriterSize(f, 1<<20), f: f, path: path}, nil
}

// finish gives a whole partition its name; with an error of its writer, or one of its own, it removes the file.
func (p *partitionFile) finish(rows int64, groups []int64, failed error) (File, error) {
	var size int64
	err := failed
	if err == nil {
		err = p.Flush()
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
	if err == nil {
		err = os.Rename(p.f.Name(), p.path)
	}
	if err != nil {
		return File{}, errors.Join(fmt.Errorf("%s: %w", p.path, err), os.Remove(p.f.Name()))
	}
	return File{Path: p.path, Rows: rows, Bytes: size, RowGroups: groups}, nil
}
