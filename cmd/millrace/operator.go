package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/sdk/pipeline"
)

// moduleFlags name the files of a pipeline's WebAssembly modules.
type moduleFlags struct{ files []string }

func (m *moduleFlags) addFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&m.files, "wasm", nil, "the file of a WebAssembly module that the pipeline's operators name, as "+
		"features=f.wasm, or f.wasm for module f; may be given again")
}

// read reads the files.
func (m *moduleFlags) read() (modules []pipeline.Module, err error) {
	seen := map[string]bool{}
	for _, given := range m.files {
		name, path, named := strings.Cut(given, "=")
		if !named {
			path = given
			name = strings.TrimSuffix(filepath.Base(given), filepath.Ext(given))
		}
		if name == "" || path == "" || seen[name] {
			return nil, usagef("--wasm %q: want NAME=FILE, as features=f.wasm, each name once", given)
		}
		seen[name] = true
		b, err := readRegular(path, format.MaxModule)
		if err != nil {
			return nil, err
		}
		modules = append(modules, pipeline.Module{Name: name, Bytes: b})
	}
	return modules, nil
}

// bind gives the pipeline its modules.
func (m *moduleFlags) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	modules, err := m.read()
	if err != nil {
		return nil, err
	}
	for _, module := range modules {
		if spec, err = spec.BindModule(module); err != nil {
			return nil, namePipeline(err, document)
		}
	}
	return spec, nil
}

// operatorCommands are the commands about operators of one's own.
type operatorCommands struct{ *console }

func (c operatorCommands) command() *cobra.Command {
	return group("operator", "Operators of one's own: test the functions of a WebAssembly module", c.test())
}

// testedModule is what `millrace operator test` prints.
type testedModule struct {
	Module    string         `json:"module"`
	Functions []wasm.Checked `json:"functions"`
	Wrong     int            `json:"wrong_rows"`
}

func (c operatorCommands) test() *cobra.Command {
	var interpret bool
	cmd := &cobra.Command{
		Use: "test MODULE VECTORS", Short: "Compare a module's functions with known answers",
		Long: `Computes functions of a WebAssembly module as engines do, and compares them with known answers: each row
alone, and all rows together. VECTORS is a JSON document that names functions, their kinds and rows;
docs/pipelines.md has its form. The exit status is 1 if a row is wrong.`,
		Example: "  millrace operator test features.wasm vectors.json\n" +
			"  millrace operator test features.wasm vectors.json --interpret --output json",
		Args: exactArgs("MODULE", "VECTORS"),
		RunE: func(_ *cobra.Command, args []string) error {
			module, err := readRegular(args[0], format.MaxModule)
			if err != nil {
				return err
			}
			text, err := readRegular(args[1], wasm.MaxVectors)
			if err != nil {
				return err
			}
			vectors, err := wasm.ParseVectors(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			r := testedModule{Module: args[0]}
			if r.Functions, err = vectors.Test(module, wasm.Options{Interpret: interpret}); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, f := range r.Functions {
				r.Wrong += f.Wrong
			}
			err = c.print(r, func(w io.Writer) {
				for _, f := range r.Functions {
					fmt.Fprintf(w, "%s%s\t%d of %d rows as known\n", f.Function, f.Signature, f.Rows-f.Wrong, f.Rows)
					for _, fault := range f.Faults {
						fmt.Fprintf(w, "\t%s\n", fault)
					}
				}
			})
			if err == nil && r.Wrong > 0 {
				err = errors.New("some rows are not as known")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&interpret, "interpret", false, "run the interpreter, as machines without the compiler do")
	return cmd
}
