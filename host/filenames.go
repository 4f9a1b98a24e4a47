package host

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/source"
)

// NameFiles returns the names of the partitions that files are: their base names. Where two files have the same, as in
// data sets with a folder for each day, all of them are named by their paths from the folder that they share.
func NameFiles(paths []string) ([]string, error) {
	names := make([]string, len(paths))
	same := false // some base names are
	seen := make(map[string]bool, len(paths))
	for i, path := range paths {
		var err error
		if !source.IsURI(path) {
			names[i] = filepath.Base(path)
		} else if names[i], err = source.BaseName(path); err != nil {
			return nil, err
		}
		same = same || seen[names[i]]
		seen[names[i]] = true
	}
	if !same {
		return names, nil
	}
	return nameByPath(paths)
}

// nameByPath returns the names of files as their paths from the folder that they share.
func nameByPath(paths []string) ([]string, error) {
	places := make([]string, len(paths)) // scheme and host; "" for files of this machine
	elements := make([][]string, len(paths))
	by := make(map[string]string, len(paths)) // the file with a path
	for i, path := range paths {
		place, whole, err := placeOf(path)
		if err != nil {
			return nil, err
		}
		if other, ok := by[whole]; ok && place == places[0] {
			return nil, fmt.Errorf("%s and %s are the same file", source.Redact(other), source.Redact(path))
		}
		if places[i] = place; place != places[0] {
			return nil, fmt.Errorf("%s and %s lie in different places, and two of the files have the same base name: "+
				"partitions are named by it", source.Redact(paths[0]), source.Redact(path))
		}
		by[whole], elements[i] = path, strings.Split(whole, "/")
	}
	shared := elements[0][:len(elements[0])-1]
	for _, e := range elements {
		n := 0
		for n < min(len(shared), len(e)-1) && shared[n] == e[n] {
			n++
		}
		shared = shared[:n]
	}
	names := make([]string, len(paths))
	for i, e := range elements {
		names[i] = strings.Join(e[len(shared):], "/")
	}
	return names, nil
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
