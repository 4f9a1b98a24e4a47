package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	wasmop "github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// imageModuleFlags name the files of an image's WebAssembly modules and of their known answers.
type imageModuleFlags struct {
	modules moduleFlags
	vectors []string
}

func (m *imageModuleFlags) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&m.modules.files, "wasm", nil, "the file of a WebAssembly module that the image is to hold, as "+
		"features=f.wasm, or f.wasm for module f; may be given again")
	f.StringArrayVar(&m.vectors, "vectors", nil, "the document of known answers of a module of the image, as "+
		"features=vectors.json, which become self-tests; may be given again")
}

// addTo adds the modules and their self-tests to an image.
func (m *imageModuleFlags) addTo(s *image.Spec) error {
	modules, err := m.modules.read()
	if err != nil {
		return err
	}
	for _, x := range modules {
		s.AddModule(image.Module{Name: x.Name, Bytes: x.Bytes})
	}
	for _, given := range m.vectors {
		name, path, _ := strings.Cut(given, "=")
		if name == "" || path == "" {
			return cli.Usagef("--vectors %q: want MODULE=FILE, as features=vectors.json", given)
		}
		i := slices.IndexFunc(s.Modules, func(x image.Module) bool { return x.Name == name })
		if i < 0 {
			return cli.Usagef("--vectors %q: the image has no module %q: name its file with --wasm", given, name)
		}
		text, err := readRegular(path, wasm.MaxVectors)
		if err != nil {
			return err
		}
		vectors, err := wasm.ParseVectors(text)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for k := range vectors.Functions {
			tests, err := moduleSelfTests(&s.Modules[i], &vectors.Functions[k])
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			s.SelfTest = append(slices.Clone(s.SelfTest), tests...)
		}
	}
	return nil
}

// moduleSelfTests returns the self-tests that a function's known answers become: one for all rows, and one for each row
// for which the function traps. Rows with a null are left out, because the function is not called for them.
func moduleSelfTests(m *image.Module, f *wasm.FunctionVectors) ([]image.Vector, error) {
	of, answers, err := f.Answers()
	if err != nil {
		return nil, err
	}
	kinds := map[format.Kind]program.Kind{format.Int64: program.Int64, format.Float32: program.Float32,
		format.Float64: program.Float64}
	call := wasmop.Op{Module: m.Digest(), Function: f.Function, Out: kinds[of.Out]}
	for i, k := range of.In {
		call.In[i] = kinds[k]
	}
	whole := image.Call{Function: call}
	var tests []image.Vector
	for row, a := range answers {
		in := make([]uint64, 0, len(a.In))
		for _, bits := range a.In {
			if bits != nil {
				in = append(in, *bits)
			}
		}
		switch {
		case len(in) < len(a.In):
		case a.Trap:
			alone := image.Call{Function: call, In: [][]uint64{in}}
			tests = append(tests, alone.TrapVector(fmt.Sprintf("%s: %s, row %d", m.Name, f.Function, row)))
		default:
			whole.In, whole.Out = append(whole.In, in), append(whole.Out, *a.Out)
		}
	}
	if len(whole.In) > 0 {
		tests = append(tests, whole.Vector(m.Name+": "+f.Function))
	}
	return tests, nil
}
