package local

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/sdk/pipeline"
)

// ReadModules reads the files of WebAssembly modules, by name, and returns them sorted by their names.
func ReadModules(files map[string]string) ([]pipeline.Module, error) {
	modules := make([]pipeline.Module, 0, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		b, err := readModule(files[name])
		if err != nil {
			return nil, fmt.Errorf("module %q: %w", name, err)
		}
		modules = append(modules, pipeline.Module{Name: name, Bytes: b})
	}
	return modules, nil
}

// readModule reads a file of at most the bytes of a module.
func readModule(path string) (b []byte, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if b, err = io.ReadAll(io.LimitReader(f, format.MaxModule+1)); err != nil {
		return nil, err
	}
	if len(b) > format.MaxModule {
		return nil, fmt.Errorf("%s: more than %d bytes, the most of a module", path, format.MaxModule)
	}
	return b, nil
}

// BindModules returns a pipeline with the modules of files, by name.
func BindModules(spec *pipeline.Spec, files map[string]string) (*pipeline.Spec, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) { // a wrong name before a wrong file
		if _, err := spec.BindModule(pipeline.Module{Name: name}); err != nil {
			return nil, err
		}
	}
	modules, err := ReadModules(files)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if spec, err = spec.BindModule(m); err != nil {
			return nil, err
		}
	}
	return spec, nil
}
