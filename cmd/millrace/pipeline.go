package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/draft"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// pipelineCommands are the commands that draft and check pipelines.
type pipelineCommands struct{ *console }

func (c pipelineCommands) command() *cobra.Command {
	return cli.Group("pipeline", "Pipelines: draft one from what files hold, check one, draw one", c.draftPipeline(),
		c.check(),
		c.show())
}

// draftedPipeline is what `millrace pipeline init` prints.
type draftedPipeline struct {
	Out      string          `json:"out"` // the file that was written; empty: none
	Document string          `json:"document"`
	Rows     int             `json:"sampled_rows"`
	LeftOut  []draft.LeftOut `json:"omitted_columns"`
}

func (c pipelineCommands) draftPipeline() *cobra.Command {
	var (
		in        input
		out       string
		overwrite bool
	)
	cmd := &cobra.Command{
		Use:   "init FILE...",
		Short: "Draft a pipeline from what files hold",
		Long: `Drafts a pipeline: which column is the label, which are numbers and which are ids, by types, names and
the first 8192 rows. Comments in the document say what was assumed, and which columns were left out and
why. Read them: a draft is where a pipeline begins. Several files are one data set.`,
		Example: "  millrace pipeline init day_0.parquet --out pipeline.yaml\n" +
			"  millrace pipeline init data/ > pipeline.yaml",
		Args: wantFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.in = args
			config, err := in.localConfig(cmd)
			if err != nil {
				return err
			}
			if _, err := os.Lstat(out); out != "" && !overwrite && err == nil {
				return fmt.Errorf("%s exists: name another file, or say --overwrite", out)
			}
			d, err := draft.New(cmd.Context(), config.Files, draft.Options{
				Source: config.Source, Text: config.Text, Sources: config.Sources,
			})
			if err != nil {
				return adviseImport(err)
			}
			result := draftedPipeline{Out: out, Document: string(d.Document), Rows: d.Rows, LeftOut: d.LeftOut}
			if result.LeftOut == nil {
				result.LeftOut = []draft.LeftOut{}
			}
			if out == "" {
				if c.Output == "json" {
					return c.Report(result, nil)
				}
				_, err := c.Out.Write(d.Document)
				return err
			}
			if err := wholefile.WritePublic(out, d.Document); err != nil {
				return err
			}
			return c.Report(result, func(w io.Writer) {
				fmt.Fprintf(w, "wrote\t%s\n", out)
				if n := len(d.LeftOut); n > 0 {
					fmt.Fprintf(w, "left out\t%s: the document's last lines say why\n", quantity.Of(n, "column"))
				}
			})
		},
	}
	f := cmd.Flags()
	in.formatFlags(f, "what the files are by name and content")
	in.sortFlag(f)
	rootFlag(f, &in.root)
	in.commands, in.threads = "vendor", 1
	f.StringVar(&out, "out", "", "file to write (default: standard output)")
	f.BoolVar(&overwrite, "overwrite", false, "replace the file of --out")
	return cmd
}

// wantFiles refuses a call without files.
func wantFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("%s wants at least one FILE", cmd.CommandPath())
	}
	return nil
}

// checkedPipeline is what `millrace pipeline check` prints. Without files, features and digest are absent: patterns
// and types follow from a schema.
type checkedPipeline struct {
	Name     string `json:"name"`
	Document string `json:"document"` // the pipeline as a JSON document, for programs without a YAML reader
	Digest   string `json:"pipeline_sha256,omitempty"`
	// Canonical is the form that the digest is taken over, as text, since its bytes count.
	Canonical string            `json:"canonical,omitempty"`
	Label     bool              `json:"label"`
	Dense     []string          `json:"dense,omitempty"`
	DenseType string            `json:"dense_type,omitempty"` // absent without dense features
	Keys      []checkedKey      `json:"keys,omitempty"`
	IDs       string            `json:"ids,omitempty"` // type of the keys' values, if there are keys
	Notes     []string          `json:"notes,omitempty"`
	Errors    []pipelineProblem `json:"errors"`
}

// checkedKey is a key of the mini-batches that a pipeline makes.
type checkedKey struct {
	Name          string `json:"name"`
	NumEmbeddings int64  `json:"num_embeddings"`
	List          bool   `json:"list"` // a row may have no id or several
}

// pipelineProblem is an error of a pipeline.
type pipelineProblem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"` // in the document, as dense[0].ops[1]
	Message string `json:"message"`
}

func (c pipelineCommands) check() *cobra.Command {
	var (
		in    input
		files pipelineFiles
	)
	cmd := &cobra.Command{
		Use:   "check PIPELINE",
		Short: "Check a pipeline, by itself or against files",
		Long: `Checks a pipeline: a YAML file, the name of a built-in pipeline, or - for standard input. With --in it is
checked against files: which features it makes of them, the size of each key's embedding table, and the
digest of its canonical form, which jobs' digests are taken over. With --output json errors are printed
as JSON, with their place in the document.`,
		Example: "  millrace pipeline check pipeline.yaml --in day_0.parquet\n" +
			"  millrace pipeline check rm1 --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && len(in.in) > 0 { // an unquoted pattern behind --in
				in.in = append(in.in, args[1:]...)
				return nil
			}
			return cli.ExactArgs("PIPELINE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := c.loadPipeline(args[0])
			if err != nil {
				return c.reportProblems(err)
			}
			result := checkedPipeline{Name: spec.Name, Document: string(spec.JSON()), Label: spec.Label != nil,
				Errors: []pipelineProblem{}}
			if spec, err = files.bind(spec, args[0]); err != nil {
				return c.reportProblems(err)
			}
			result.Document = string(spec.JSON()) // with the numbers of statistics
			if len(in.in) > 0 {
				if err := in.checkAgainstFiles(cmd, spec, &result); err != nil {
					return c.reportProblems(namePipeline(err, args[0]))
				}
			}
			return c.Report(result, func(w io.Writer) { result.table(w, len(in.in) > 0) })
		},
	}
	f := cmd.Flags()
	addNames(f, &in.in, "in", "files, folders or patterns to check the pipeline against")
	in.formatFlags(f, "what the files of --in are by name and content")
	in.sortFlag(f)
	rootFlag(f, &in.root)
	in.commands, in.threads = "vendor", 1
	files.addFlags(f)
	return cmd
}

// loadPipeline returns the pipeline of standard input for "-", and that of a document or a name otherwise.
func (c pipelineCommands) loadPipeline(name string) (*pipeline.Spec, error) {
	if name != "-" {
		return loadPipeline(name)
	}
	document, err := io.ReadAll(io.LimitReader(c.In, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	spec, err := pipeline.Parse(document)
	return spec, namePipeline(err, "standard input")
}

// reportProblems prints the errors of a pipeline as JSON if that is wanted. It returns the error to end with.
func (c pipelineCommands) reportProblems(err error) error {
	var wrong problem.Errors
	if c.Output != "json" || !errors.As(err, &wrong) {
		return err
	}
	result := checkedPipeline{}
	for _, one := range wrong {
		without := *one
		without.Pos = pipeline.Pos{}
		result.Errors = append(result.Errors, pipelineProblem{Line: one.Pos.Line, Column: one.Pos.Column,
			Path: one.Path, Message: without.Error()})
	}
	if err := c.Report(result, nil); err != nil {
		return err
	}
	return cli.ErrReported
}

// checkAgainstFiles resolves and lowers the pipeline for the files of --in.
func (i *input) checkAgainstFiles(cmd *cobra.Command, spec *pipeline.Spec, result *checkedPipeline) (err error) {
	config, err := i.localConfig(cmd)
	if err != nil {
		return err
	}
	drive, err := host.OpenFiles(cmd.Context(), config.Files, host.DriveOptions{
		Engine: host.EngineCPU, Source: config.Source, Text: config.Text, Sources: config.Sources,
		FileNames: config.Names,
	})
	if err != nil {
		return adviseImport(err)
	}
	manager, err := host.NewManager(host.Options{}, drive)
	if err != nil {
		return errors.Join(err, drive.Close())
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	data, err := manager.Dataset(cmd.Context())
	if err != nil {
		return err
	}
	resolved, err := data.Resolve(spec)
	if err != nil {
		return err
	}
	lowered, err := lowering.LowerBeforeSelection(resolved)
	if err != nil {
		return err
	}
	schema := lowered.Schema
	digest := resolved.Digest()
	result.Canonical = string(resolved.Canonical())
	result.Digest, result.Dense, result.Notes = hex.EncodeToString(digest[:]), schema.Dense, resolved.Notes()
	if len(schema.Dense) > 0 {
		result.DenseType = schema.DenseDType().String()
	}
	if len(schema.Keys) > 0 {
		result.IDs = schema.IDs.String()
	}
	for _, key := range schema.Keys {
		result.Keys = append(result.Keys, checkedKey{Name: key.Name, NumEmbeddings: key.NumEmbeddings, List: key.List})
	}
	return nil
}

// table writes the result for people.
func (v *checkedPipeline) table(w io.Writer, files bool) {
	fmt.Fprintf(w, "%s\tno errors\n", terminal.Cell(v.Name))
	if !files {
		return
	}
	label := "no label"
	if v.Label {
		label = "a label"
	}
	dense, keys := fmt.Sprintf("%d dense", len(v.Dense)), quantity.Of(len(v.Keys), "key")
	if v.DenseType != "" {
		dense += " of " + v.DenseType
	}
	if v.IDs != "" {
		keys += " of " + v.IDs
	}
	fmt.Fprintf(w, "features\t%s, %s, %s\ndigest\t%s\n", label, dense, keys, v.Digest)
	for _, note := range v.Notes {
		fmt.Fprintf(w, "note\t%s\n", strings.ReplaceAll(note, "\t", " "))
	}
}
