package guest

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where the packages put shared libraries, inside the guests' root. A guest has them all in the first.
var libraryFolders = []string{
	"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64",
	"usr/lib/x86_64-linux-gnu/ceph", "usr/lib/x86_64-linux-gnu/systemd",
}

// Where they put programs.
var programFolders = []string{"bin", "sbin", "usr/bin", "usr/sbin"}

// errNoSuch is the end of a search through folders.
var errNoSuch = errors.New("it is in no package that .ci/kernel fetches")

// program is one program of the guests' root with the files that it needs to run.
type program struct {
	path   string            // in the guest
	needs  map[string]string // library: path in the guest, path here
	source string
}

// findProgram looks a program up by name and follows the shared libraries that it and they name.
func findProgram(root, name string) (program, error) {
	for _, folder := range programFolders {
		source := filepath.Join(root, folder, name)
		if _, err := os.Stat(source); err != nil {
			continue
		}
		p := program{path: folder + "/" + name, source: source, needs: map[string]string{}}
		if err := addLibraries(root, source, p.needs); err != nil {
			return program{}, fmt.Errorf("find what %s needs: %w", name, err)
		}
		return p, nil
	}
	return program{}, fmt.Errorf("find program %s: %w", name, errNoSuch)
}

func addLibraries(root, source string, needs map[string]string) error {
	f, err := elf.Open(source)
	if err != nil {
		var format *elf.FormatError
		if errors.As(err, &format) {
			return nil // a script
		}
		return err
	}
	defer f.Close()
	if s := f.Section(".interp"); s != nil {
		interp, err := s.Data()
		if err != nil {
			return err
		}
		at := strings.Trim(string(bytes.TrimRight(interp, "\x00")), "/")
		needs[at] = filepath.Join(root, at)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range libraries {
		at := libraryFolders[0] + "/" + name
		if _, ok := needs[at]; ok {
			continue
		}
		file, err := findLibrary(root, name)
		if err != nil {
			return err
		}
		needs[at] = file
		if err := addLibraries(root, file, needs); err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(root, name string) (string, error) {
	for _, folder := range libraryFolders {
		file := filepath.Join(root, folder, name)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("library %s: %w", name, errNoSuch)
}

// module is a file to load, with parameters as insmod takes them.
type module struct{ file, parameters string }

// moduleOrder returns the files of the named modules and of all that those depend on, each after what it needs.
// Parameters follow a name after a blank. A name that starts with '?' may be absent: some kernels have built in what
// others load.
func moduleOrder(folder string, names []string) ([]module, error) {
	var order []module
	seen := map[string]bool{}
	var add func(name, parameters string, optional bool, path []string) error
	add = func(name, parameters string, optional bool, path []string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		file, err := findModule(folder, name)
		if errors.Is(err, errNoSuch) && optional {
			return nil
		}
		if err != nil {
			return fmt.Errorf("module %s: %w", strings.Join(append(path, name), " needs "), err)
		}
		depends, err := moduleDepends(file)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, d := range depends {
			if err := add(d, "", false, append(slices.Clone(path), name)); err != nil {
				return err
			}
		}
		order = append(order, module{file, parameters})
		return nil
	}
	for _, name := range names {
		bare, optional := strings.CutPrefix(name, "?")
		bare, parameters, _ := strings.Cut(bare, " ")
		if err := add(bare, parameters, optional, nil); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// findModule takes '-' and '_' in a module's name for the same, as the kernel does.
func findModule(folder, name string) (string, error) {
	for _, spelling := range []string{name, strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "-", "_")} {
		file := filepath.Join(folder, spelling+".ko")
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".ko")
		if ok && strings.ReplaceAll(base, "-", "_") == strings.ReplaceAll(name, "-", "_") {
			return filepath.Join(folder, e.Name()), nil
		}
	}
	return "", errNoSuch
}

// moduleDepends reads "depends=" of a module's information section.
func moduleDepends(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, errors.New("it has no .modinfo section: not a kernel module")
	}
	info, err := s.Data()
	if err != nil {
		return nil, err
	}
	for _, field := range strings.Split(string(info), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}
