package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/unit/wasm"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
)

// moduleFlags name the files of a pipeline's WebAssembly modules.
type moduleFlags struct{ files []string }

func (m *moduleFlags) addFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&m.files, "wasm", nil, "the file of a WebAssembly module that the pipeline's operators name, as "+
		"features=f.wasm, or f.wasm for module f; may be given again")
}

// named returns the paths by name.
func (m *moduleFlags) named() (map[string]string, error) {
	files := map[string]string{}
	for _, given := range m.files {
		name, path, named := strings.Cut(given, "=")
		if !named {
			path = given
			name = strings.TrimSuffix(filepath.Base(given), filepath.Ext(given))
		}
		if _, twice := files[name]; name == "" || path == "" || twice {
			return nil, cli.Usagef("--wasm %q: want NAME=FILE, as features=f.wasm, each name once", given)
		}
		files[name] = path
	}
	return files, nil
}

// read reads the files.
func (m *moduleFlags) read() ([]pipeline.Module, error) {
	files, err := m.named()
	if err != nil {
		return nil, err
	}
	return local.ReadModules(files)
}

// bind gives the pipeline its modules.
func (m *moduleFlags) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	files, err := m.named()
	if err != nil {
		return nil, err
	}
	bound, err := local.BindModules(spec, files)
	return bound, namePipeline(err, document)
}

// jobModule is a module whose functions a job's pipeline calls.
type jobModule struct {
	Name   string `json:"name"`
	Digest string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// viewModules lists the modules of a job.
func viewModules(spec *apiv1.JobSpec) []jobModule {
	list := []jobModule{}
	for _, m := range spec.GetModules() {
		list = append(list, jobModule{m.GetName(), hex.EncodeToString(m.GetSha256()), m.GetBytes()})
	}
	return list
}

// operatorCommands are the commands about operators of one's own.
type operatorCommands struct{ *console }

func (c operatorCommands) command() *cobra.Command {
	return cli.Group("operator", "Operators of one's own: test the functions of a WebAssembly module", c.test())
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
		Args: cli.ExactArgs("MODULE", "VECTORS"),
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
			err = c.Report(r, func(w io.Writer) {
				for _, f := range r.Functions {
					fmt.Fprintf(w, "%s%s\t%d of %s as known\n", f.Function, f.Signature, f.Rows-f.Wrong,
						quantity.Of(f.Rows, "row"))
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
