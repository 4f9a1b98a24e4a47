// Package filename names the partitions of a data set by the files that they are: a partition's name is the path of its
// file from where the data set begins. Its errors wrap ErrNames, or are those of a location that cannot be read.
package filename

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/host/source"
)

// File is where a file lies, and the name of its partition.
type File struct {
	Location source.Location
	Name     string
}

// Locations returns the locations of files.
func Locations(files []File) []source.Location {
	locations := make([]source.Location, len(files))
	for i, f := range files {
		locations[i] = f.Location
	}
	return locations
}

// Names returns the names of files.
func Names(files []File) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	return names
}

// ErrNames says that files do not make the partitions of one data set: a file or a name is there twice, or a file
// lies outside the root.
var ErrNames = errors.New("name partitions")

// NameEach returns the names of the partitions of files that are named one by one, as NameFound does.
func NameEach(locations []source.Location) ([]string, error) {
	files := make([]File, 0, len(locations))
	for _, at := range locations {
		named, err := NameFound(at, []source.Location{at}, source.Location{})
		if err != nil {
			return nil, err
		}
		files = append(files, named...)
	}
	if err := CheckNames(files); err != nil {
		return nil, err
	}
	return Names(files), nil
}

// NameFound names the files that an argument stands for: a file, a folder or a pattern. A partition's name is its path
// from where the data set begins: from the root, if one is given; otherwise from the folder that is named, from the
// folder before the first wildcard of a pattern, or from a file's own folder. If the path to that beginning ends in
// folders of values (day=1), they belong to the names. So a file's name does not depend on the files beside it.
func NameFound(argument source.Location, found []source.Location, root source.Location) ([]File, error) {
	begin, given := root, root != source.Location{}
	if !given {
		begin = beginningOf(argument, found)
	}
	place, folder, err := placeOf(begin)
	if err != nil {
		return nil, err
	}
	parts := elementsOf(folder)
	for !given && len(parts) > 0 && strings.Index(parts[len(parts)-1], "=") > 0 {
		parts = parts[:len(parts)-1]
	}
	files := make([]File, len(found))
	for i, file := range found {
		if file.InStore() {
			if _, err := file.BaseName(); err != nil {
				return nil, err
			}
		}
		at, whole, err := placeOf(file)
		if err != nil {
			return nil, err
		}
		of := elementsOf(whole)
		if at != place || len(of) <= len(parts) || !slices.Equal(of[:len(parts)], parts) {
			return nil, fmt.Errorf("%w: %s does not lie below %s, where the data set begins", ErrNames, file, begin)
		}
		files[i] = File{Location: file, Name: strings.Join(of[len(parts):], "/")}
	}
	return files, nil
}

// CheckOnce refuses a file that is there twice. The error wraps ErrNames.
func CheckOnce(files []File) error {
	type spot struct{ place, path string }
	found := make(map[spot]bool, len(files))
	for _, f := range files {
		place, path, err := placeOf(f.Location)
		if err != nil {
			return err
		}
		if found[spot{place, path}] {
			return fmt.Errorf("%w: %s is there twice: a data set has each file once", ErrNames, f.Location)
		}
		found[spot{place, path}] = true
	}
	return nil
}

// CheckNames refuses a file that is there twice, and two files of one name. The error wraps ErrNames.
func CheckNames(files []File) error {
	if err := CheckOnce(files); err != nil {
		return err
	}
	byName := make(map[string]source.Location, len(files))
	for _, f := range files {
		if other, ok := byName[f.Name]; ok {
			return fmt.Errorf("%w: %s and %s would both be called %s: say in which folder the data set begins "+
				"(--root FOLDER, root= in Python)", ErrNames, other, f.Location, f.Name)
		}
		byName[f.Name] = f.Location
	}
	return nil
}

// beginningOf returns the folder in which the files that an argument stands for begin.
func beginningOf(argument source.Location, found []source.Location) source.Location {
	parent := func(s string) source.Location {
		if i := strings.LastIndexByte(s, '/'); i >= 0 {
			return source.ParseLocation(s[:i+1])
		}
		return source.ParseLocation(".")
	}
	name := argument.Name()
	if !argument.InStore() {
		name = filepath.ToSlash(name)
	}
	folder := strings.TrimSuffix(name, "/") + "/"
	isFolder := len(found) > 0
	for _, file := range found {
		isFolder = isFolder && (strings.HasPrefix(filepath.ToSlash(file.Name()), folder) || name == ".")
	}
	switch wildcard := strings.IndexAny(name, `*?[\`); {
	case isFolder:
		return argument
	case len(found) == 1 && found[0] == argument, wildcard < 0:
		if argument.InStore() {
			return parent(argument.String())
		}
		return source.ParseLocation(filepath.Dir(name))
	default:
		return parent(name[:wildcard])
	}
}

// elementsOf returns the elements of a path.
func elementsOf(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}

// placeOf divides a location into the place where the file lies, a scheme and a host, and its path there with slashes.
func placeOf(at source.Location) (place, path string, err error) {
	if !at.InStore() {
		whole, err := filepath.Abs(at.Name())
		return "", filepath.ToSlash(whole), err
	}
	host, key := at.HostAndKey()
	if at.Scheme() == "s3" {
		return "s3://" + host, key, nil
	}
	path, err = url.PathUnescape(key)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", at, err)
	}
	return at.Scheme() + "://" + strings.ToLower(host), path, nil
}
