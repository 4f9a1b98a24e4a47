package partitionfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/openfiles"
)

// ErrNotRegular says that a name is not a regular file.
var ErrNotRegular = openfiles.ErrNotRegular

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

// NoPartitionsError says that a folder, or a list of names, holds no file that is taken.
type NoPartitionsError struct {
	Folder   string
	Excluded int // number of files that NamePatterns leaves out
}

func (e *NoPartitionsError) Error() string {
	if e.Excluded > 0 {
		return fmt.Sprintf("%s: all of its files (%d) are left out by --include and --exclude", e.Folder, e.Excluded)
	}
	return fmt.Sprintf("%s holds no files (names that begin with . or _ do not count), and the folders in it are not "+
		"searched: name them, or use a pattern", e.Folder)
}

// listLocal returns the files of this machine that a name stands for, and reports whether the name is that of one file.
func (r Resolver) listLocal(name string) (files []string, isFile bool, err error) {
	info, err := os.Stat(name)
	if err != nil {
		files, err = r.listPattern(name, err)
		return files, false, err
	}
	files, err = r.listNamed(name, info)
	return files, !info.IsDir(), err
}

// listNamed returns the files of a folder, or the file that was named, unless it is left out.
func (r Resolver) listNamed(name string, info os.FileInfo) ([]string, error) {
	switch {
	case info.IsDir():
		return r.listFolder(name)
	case !r.Names.take(filepath.Base(name)):
		return nil, nil
	}
	if r.Pipes {
		return []string{name}, nil
	}
	return []string{name}, openfiles.CheckRegular(name, info)
}

// listFolder returns the files of a folder that are taken.
func (r Resolver) listFolder(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	none := &NoPartitionsError{Folder: name}
	var files []string
	for _, e := range entries {
		if e.IsDir() || isHidden(e.Name()) {
			continue
		}
		if !r.Names.take(e.Name()) {
			none.Excluded++
			continue
		}
		file := filepath.Join(name, e.Name())
		if !e.Type().IsRegular() {
			info, err := os.Stat(file) // of the file that a link leads to
			if err == nil && !info.IsDir() {
				err = openfiles.CheckRegular(file, info)
			}
			if err != nil {
				return nil, err
			}
			if info.IsDir() {
				continue
			}
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, none
	}
	return files, nil
}

// isHidden reports whether a name is of those that other programs leave beside partitions, as _SUCCESS.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_$folder$")
}

// hides reports whether a name has a hidden element where the pattern that it matches has none.
func hides(pattern, name, separator string) bool {
	of, wanted := strings.Split(name, separator), strings.Split(pattern, separator)
	for i := 1; i <= min(len(of), len(wanted)); i++ { // from the end, since Glob may leave out elements before it
		if isHidden(of[len(of)-i]) && !isHidden(wanted[len(wanted)-i]) {
			return true
		}
	}
	return false
}

// listPattern returns the files that match a pattern, and the files of folders that match it. It returns absent for a
// name that matches nothing.
func (r Resolver) listPattern(pattern string, absent error) ([]string, error) {
	found, err := filepath.Glob(pattern)
	found = slices.DeleteFunc(found, func(name string) bool {
		return hides(pattern, name, string(filepath.Separator))
	})
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
		of, err := r.listNamed(name, info)
		if err != nil {
			return nil, err
		}
		files = append(files, of...)
	}
	if len(files) == 0 {
		return nil, &NoPartitionsError{Folder: pattern, Excluded: len(found)}
	}
	return files, nil
}
