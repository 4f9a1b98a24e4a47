package pipeline

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// The pipelines that ship with Millrace: PreSto's RM1 to RM5 (Table I), those of Piper and MiniPipe, with and without
// their vocabularies, and DPP's transforms.
//
//go:embed named/*.yaml
var namedFiles embed.FS

// Names returns the names of the pipelines that ship with Millrace, sorted.
func Names() []string {
	files, err := fs.Glob(namedFiles, "named/*.yaml")
	if err != nil {
		return nil // only a bad pattern fails
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "named/"), ".yaml")
	}
	slices.Sort(files)
	return files
}

// Document returns the YAML of the pipeline of a name.
func Document(name string) ([]byte, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("pipeline %q: no such name%s", problem.Shorten(name), problem.Suggest(name, Names()))
	}
	b, err := namedFiles.ReadFile("named/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("pipeline %q: no such name%s", problem.Shorten(name), problem.Suggest(name, Names()))
	}
	return b, nil
}

// Named returns the pipeline of a name, one of [Names].
func Named(name string) (*Spec, error) {
	b, err := Document(name)
	if err != nil {
		return nil, err
	}
	s, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("pipeline %q: %w", name, err)
	}
	return s, nil
}
