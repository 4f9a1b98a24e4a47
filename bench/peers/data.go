package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/workload"
)

// layout is how a workload's file is written.
type layout struct{ Codec, Encoding string }

func (l layout) String() string { return l.Codec + ", " + l.Encoding }

// layouts are the layouts in the table.
var layouts = []layout{{"none", "plain"}, {"snappy", "dictionary"}, {"zstd", "dictionary"}}

// dataset is one file and the columns to make from it.
type dataset struct {
	Model    workload.Model
	Layout   layout
	Path     string
	Bytes    []byte     // the file
	Parts    []*dataset // where there are threads: a file for each, of equal rows; Path and Bytes are the first's
	Rows     int64
	Batch    int
	Max      int64     // of SigridHash, salt 0
	Borders  []float32 // of Bucketize; they increase
	From, To float64   // ends of the borders, which are log-spaced

	Vocabulary *vocabularyWork // not nil: ids are looked up in vocabularies, and neither hashed nor generated
	Threads    int             // of a peer that divides the work itself
}

// dataOptions select the data that generate makes.
type dataOptions struct {
	Rows     int64   // 0: a default by model
	Coverage float64 // 0: the model's own
	Pages    int     // bytes of a page, 0: workload's default
	Groups   int     // rows of a row group, 0: workload's default
	Threads  int     // above 1: as many files
	Criteo   string  // file of Criteo's rows as text, for the model rm1-real
}

// defaultRows keeps a file near 100 MB, as bench/rm does.
func defaultRows(m workload.Model) int64 {
	if m.Lists {
		return 16_384
	}
	return 524_288
}

// findModel returns a model of the data: rm1-real has the columns of rm1.
func findModel(name string) (workload.Model, error) {
	if name == rm.RealRM1 {
		name = "rm1"
	}
	return workload.Find(name)
}

// generate writes the workload's file and reads it back into memory.
func generate(ctx context.Context, dir, model string, l layout, o dataOptions) (*dataset, error) {
	m, err := findModel(model)
	if err != nil {
		return nil, err
	}
	if o.Rows == 0 {
		o.Rows = defaultRows(m)
	}
	out := filepath.Join(dir, fmt.Sprintf("%s-%s-%s", model, l.Codec, l.Encoding))
	var files []workload.File
	if model == rm.RealRM1 {
		files, err = tile(ctx, out, l, &o)
	} else {
		files, err = workload.Generate(ctx, workload.Options{Model: m, Rows: o.Rows, Out: out,
			Codec: l.Codec, Encoding: l.Encoding, Coverage: o.Coverage, PageBytes: o.Pages, RowGroupRows: o.Groups,
			Partitions: max(1, o.Threads), Overwrite: true})
	}
	if err != nil {
		return nil, err
	}
	var parts []*dataset
	for _, f := range files {
		p := &dataset{Model: m, Layout: l, Path: f.Path, Rows: f.Rows, Batch: workload.Batch}
		if p.Bytes, err = os.ReadFile(p.Path); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	d := *parts[0]
	if o.Threads > 1 {
		d.Parts, d.Rows = parts, o.Rows
	}
	return &d, nil
}

// tile writes Criteo's own rows, repeated, as a file for each thread. All files have as many rows, so that there are
// fewer than o.Rows if the threads do not divide them.
func tile(ctx context.Context, out string, l layout, o *dataOptions) ([]workload.File, error) {
	threads := int64(max(1, o.Threads))
	o.Rows -= o.Rows % threads
	text, _, err := rm.Tile(o.Criteo, o.Rows)
	if err != nil {
		return nil, err
	}
	files, _, err := workload.Import(ctx, bytes.NewReader(text), workload.ImportOptions{Out: out,
		PartitionRows: o.Rows / threads, RowGroupRows: o.Groups, PageBytes: o.Pages, Codec: l.Codec, Encoding: l.Encoding,
		Overwrite: true})
	return files, err
}

// files are the parts, or the file itself.
func (d *dataset) files() []*dataset {
	if d.Parts == nil {
		return []*dataset{d}
	}
	return d.Parts
}

// fileBytes counts the bytes of all files.
func (d *dataset) fileBytes() int {
	n := 0
	for _, f := range d.files() {
		n += len(f.Bytes)
	}
	return n
}

// withModel returns the dataset, and its parts, of another model.
func (d *dataset) withModel(m workload.Model) *dataset {
	o := *d
	o.Model = m
	o.Parts = nil
	for _, p := range d.Parts {
		o.Parts = append(o.Parts, p.withModel(m))
	}
	return &o
}

// learn takes the operators' parameters from a lowered program, so that the peers and ours work with the same ones. It
// refuses a program that the peers do not know.
func (d *dataset) learn(p *program.Program) error {
	for _, part := range d.Parts {
		if err := part.learn(p); err != nil {
			return err
		}
	}
	for _, c := range p.Columns {
		for _, s := range c.Sinks {
			for _, op := range s.Ops {
				switch op := op.(type) {
				case sigridhash.Op:
					if op.Salt != 0 || d.Max != 0 && d.Max != op.Max {
						return fmt.Errorf("column %s: sigrid_hash of salt %d and max %d; the peers know one max and salt 0",
							c.Name, op.Salt, op.Max)
					}
					d.Max = op.Max
				case *bucketize.Op:
					d.Borders = op.Borders32
				}
			}
		}
	}
	if d.Max == 0 || len(d.Borders) < 2 {
		return fmt.Errorf("pipeline of %s: no sigrid_hash or no bucketize", d.Model.Name)
	}
	d.From, d.To = float64(d.Borders[0]), float64(d.Borders[len(d.Borders)-1])
	return nil
}

// keys returns the number of sparse features, generated ones last.
func (d *dataset) keys() int { return d.Model.Sparse + d.Model.Generated }
