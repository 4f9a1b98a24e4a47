package partitionfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotRegular says that a name is no regular file: partitions are read at any place and more than once.
var ErrNotRegular = errors.New("no regular file: partitions are read from files")

// NoMatchError says that no file has a name of a pattern.
type NoMatchError struct{ Pattern string }

func (e *NoMatchError) Error() string {
	if filepath.IsAbs(e.Pattern) {
		return e.Pattern + " matches no file"
	}
	folder, err := os.Getwd()
	if err != nil {
		return e.Pattern + " matches no file of the current folder"
	}
	return fmt.Sprintf("%s matches no file: patterns begin in the current folder, %s", e.Pattern, folder)
}

// Is reports whether the target is fs.ErrNotExist.
func (e *NoMatchError) Is(target error) bool { return target == fs.ErrNotExist }

// NoPartitionsError says that a folder holds no file of a format.
type NoPartitionsError struct {
	Folder string
	Format Format
}

func (e *NoPartitionsError) Error() string {
	return fmt.Sprintf("%s holds no %s files: the folders in it are not searched: name them, or use a pattern",
		e.Folder, e.Format)
}

// Expand turns names of files, folders and patterns into files, sorted, each once. Of a folder it takes the files whose
// extension is the format's, without those whose name begins with a dot or an underscore; links count as the files or
// folders that they lead to. In a pattern, * does not cross a slash; a folder that matches counts as if it were named,
// and a name that begins with a dot or an underscore matches only a pattern that begins so.
func Expand(names []string, format Format) ([]string, error) {
	var files []string
	for _, name := range names {
		info, err := os.Stat(name)
		var found []string
		switch {
		case err == nil && info.IsDir():
			found, err = expandFolder(name, format)
		case err == nil:
			found, err = []string{name}, checkRegular(name, info)
		default:
			found, err = expandPattern(name, format, err)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// expandFolder returns the partitions of a folder.
func expandFolder(name string, format Format) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if isHidden(e.Name()) || !slices.Contains(format.suffixes(), filepath.Ext(e.Name())) {
			continue
		}
		file := filepath.Join(name, e.Name())
		info, err := os.Stat(file) // of the file that a link leads to
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, &NoPartitionsError{Folder: name, Format: format}
	}
	return files, nil
}

// isHidden reports whether a name is of those that other programs leave beside partitions, as _SUCCESS.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// match returns what matches a pattern, without hidden files and folders that the pattern does not name as such.
func match(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	elements := func(path string) []string { return strings.Split(path, string(filepath.Separator)) }
	wanted := elements(pattern)
	return slices.DeleteFunc(found, func(name string) bool {
		of := elements(name)
		for i := 1; i <= min(len(of), len(wanted)); i++ { // from the end: Glob may leave out what is before
			if isHidden(of[len(of)-i]) && !isHidden(wanted[len(wanted)-i]) {
				return true
			}
		}
		return false
	}), err
}

// expandPattern returns the files that match a pattern, and those of the folders that do; absent is the error of a name
// that matches nothing.
func expandPattern(pattern string, format Format, absent error) ([]string, error) {
	found, err := match(pattern)
	switch {
	case err == nil && len(found) == 0 && strings.ContainsAny(pattern, "*?["):
		return nil, &NoMatchError{Pattern: pattern}
	case err != nil || len(found) == 0:
		return nil, absent
	}
	var files []string
	for _, name := range found {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		of := []string{name}
		if info.IsDir() {
			of, err = expandFolder(name, format)
		} else {
			err = checkRegular(name, info)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, of...)
	}
	return files, nil
}

// checkRegular refuses what partitions cannot be read from. Opening a pipe would wait for a writer, and no interrupt
// ends that.
func checkRegular(name string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %w", name, ErrNotRegular)
	}
	return nil
}
