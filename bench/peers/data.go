package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/bench/workload"
	"github.com/millrace/millrace/fpga/program"
)

// layout is how a workload's file is written.
type layout struct{ Codec, Encoding string }

func (l layout) String() string { return l.Codec + ", " + l.Encoding }

// layouts are what the table has.
var layouts = []layout{{"none", "plain"}, {"snappy", "dictionary"}}

// dataset is one file and what is to be made of it.
type dataset struct {
	Model    workload.Model
	Layout   layout
	Path     string
	Bytes    []byte // the file
	Rows     int64
	Batch    int
	Max      int64     // of SigridHash, salt 0
	Borders  []float32 // of Bucketize; they increase
	From, To float64   // ends of the borders, which are log-spaced
}

// dataOptions say what generate makes.
type dataOptions struct {
	Rows     int64   // 0: a default by model
	Coverage float64 // 0: the model's own
	Pages    int     // bytes of a page, 0: workload's default
	Groups   int     // rows of a row group, 0: workload's default
}

// defaultRows keeps a file near 100 MB, as bench/rm does.
func defaultRows(m workload.Model) int64 {
	if m.Lists {
		return 16_384
	}
	return 524_288
}

// generate writes the workload's file and reads it back into memory.
func generate(ctx context.Context, dir, model string, l layout, o dataOptions) (*dataset, error) {
	m, err := workload.Find(model)
	if err != nil {
		return nil, err
	}
	if o.Rows == 0 {
		o.Rows = defaultRows(m)
	}
	files, err := workload.Generate(ctx, workload.Options{Model: m, Rows: o.Rows, Out: filepath.Join(dir, fmt.Sprintf("%s-%s-%s", m.Name, l.Codec, l.Encoding)),
		Codec: l.Codec, Encoding: l.Encoding, Coverage: o.Coverage, PageBytes: o.Pages, RowGroupRows: o.Groups, Overwrite: true})
	if err != nil {
		return nil, err
	}
	d := &dataset{Model: m, Layout: l, Path: files[0].Path, Rows: files[0].Rows, Batch: workload.Batch}
	if d.Bytes, err = os.ReadFile(d.Path); err != nil {
		return nil, err
	}
	return d, nil
}

// learn takes the operators' parameters from a lowered program, so that nobody's are typed twice, and refuses programs that the peers do not know.
func (d *dataset) learn(p *program.Program) error {
	for _, c := range p.Columns {
		for _, s := range c.Sinks {
			for _, op := range s.Ops {
				switch op := op.(type) {
				case program.SigridHash:
					if op.Salt != 0 || d.Max != 0 && d.Max != op.Max {
						return fmt.Errorf("column %s: sigrid_hash %+v; the peers know one max and salt 0", c.Name, op)
					}
					d.Max = op.Max
				case *program.Bucketize:
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
