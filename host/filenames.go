package host

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/host/source"
)

// NamedFile is the path or URI of a file, and the name of its partition.
type NamedFile struct{ Path, Name string }

// Paths returns the paths of files.
func Paths(files []NamedFile) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

// Names returns the names of files.
func Names(files []NamedFile) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	return names
}

// ErrFileNames says that files do not make the partitions of one data set: a file or a name is there twice, or a file
// lies outside the root.
var ErrFileNames = errors.New("name partitions")

// NameFiles returns the names of the partitions of files that are named one by one, as NameFound does.
func NameFiles(paths []string) ([]string, error) {
	files := make([]NamedFile, 0, len(paths))
	for _, path := range paths {
		named, err := NameFound(path, []string{path}, "")
		if err != nil {
			return nil, err
		}
		files = append(files, named...)
	}
	if err := CheckFileNames(files); err != nil {
		return nil, err
	}
	return Names(files), nil
}

// NameFound names the files that an argument stands for: a file, a folder or a pattern. A partition's name is its path
// from where the data set begins: from the root, if one is given; otherwise from the folder that is named, from the
// folder before the first wildcard of a pattern, or from a file's own folder. If the path to that beginning ends in
// folders of values (day=1), they belong to the names. So a file's name does not depend on the files beside it.
func NameFound(argument string, found []string, root string) ([]NamedFile, error) {
	begin := root
	if begin == "" {
		begin = beginningOf(argument, found)
	}
	place, folder, err := placeOf(begin)
	if err != nil {
		return nil, err
	}
	parts := elementsOf(folder)
	for root == "" && len(parts) > 0 && strings.Index(parts[len(parts)-1], "=") > 0 {
		parts = parts[:len(parts)-1]
	}
	files := make([]NamedFile, len(found))
	for i, path := range found {
		if source.IsURI(path) {
			if _, err := source.BaseName(path); err != nil {
				return nil, err
			}
		}
		at, whole, err := placeOf(path)
		if err != nil {
			return nil, err
		}
		of := elementsOf(whole)
		if at != place || len(of) <= len(parts) || !slices.Equal(of[:len(parts)], parts) {
			return nil, fmt.Errorf("%w: %s does not lie below %s, where the data set begins", ErrFileNames,
				source.Redact(path), source.Redact(begin))
		}
		files[i] = NamedFile{Path: path, Name: strings.Join(of[len(parts):], "/")}
	}
	return files, nil
}

// CheckOnce refuses a file that is there twice. The error wraps ErrFileNames.
func CheckOnce(files []NamedFile) error {
	type location struct{ place, path string }
	found := make(map[location]bool, len(files))
	for _, f := range files {
		place, path, err := placeOf(f.Path)
		if err != nil {
			return err
		}
		if found[location{place, path}] {
			return fmt.Errorf("%w: %s is there twice: a data set has each file once", ErrFileNames,
				source.Redact(f.Path))
		}
		found[location{place, path}] = true
	}
	return nil
}

// CheckFileNames refuses a file that is there twice, and two files of one name. The error wraps ErrFileNames.
func CheckFileNames(files []NamedFile) error {
	if err := CheckOnce(files); err != nil {
		return err
	}
	byName := make(map[string]string, len(files))
	for _, f := range files {
		if other, ok := byName[f.Name]; ok {
			return fmt.Errorf("%w: %s and %s would both be called %s: say in which folder the data set begins "+
				"(--root FOLDER, root= in Python)", ErrFileNames, source.Redact(other), source.Redact(f.Path), f.Name)
		}
		byName[f.Name] = f.Path
	}
	return nil
}

// beginningOf returns the folder in which the files that an argument stands for begin.
func beginningOf(argument string, found []string) string {
	parent := func(s string) string {
		if i := strings.LastIndexByte(s, '/'); i >= 0 {
			return s[:i+1]
		}
		return "."
	}
	if !source.IsURI(argument) {
		argument = filepath.ToSlash(argument)
	}
	folder := strings.TrimSuffix(argument, "/") + "/"
	isFolder := len(found) > 0
	for _, path := range found {
		isFolder = isFolder && (strings.HasPrefix(filepath.ToSlash(path), folder) || argument == ".")
	}
	switch wildcard := strings.IndexAny(argument, `*?[\`); {
	case isFolder:
		return argument
	case len(found) == 1 && found[0] == argument, wildcard < 0:
		if source.IsURI(argument) {
			return parent(source.Redact(argument))
		}
		return filepath.Dir(argument)
	default:
		return parent(argument[:wildcard])
	}
}

// elementsOf returns the elements of a path.
func elementsOf(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}

// placeOf divides the name of a file into the place where it lies, a scheme and a host, and its path there with
// slashes.
func placeOf(name string) (place, path string, err error) {
	if !source.IsURI(name) {
		whole, err := filepath.Abs(name)
		return "", filepath.ToSlash(whole), err
	}
	scheme, rest, _ := strings.Cut(source.Redact(name), "://")
	host, key, _ := strings.Cut(rest, "/")
	if strings.EqualFold(scheme, "s3") {
		return "s3://" + host, key, nil
	}
	path, err = url.PathUnescape(key)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", source.Redact(name), err)
	}
	return strings.ToLower(scheme + "://" + host), path, nil
}
