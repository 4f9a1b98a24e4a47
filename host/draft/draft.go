package draft

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
)

// Options say how files are read. The zero value is for Parquet.
type Options struct {
	Source  program.Source // format of the files; 0 means Parquet
	Text    text.Options   // how text is read
	Sources host.Sources   // Sources open files that are named by a URI.
}

// Draft is a pipeline that New made of columns and rows of files, with its assumptions in the comments of the document.
type Draft struct {
	Spec     *pipeline.Spec
	Document []byte // the pipeline in YAML, with comments that say what was assumed
	LeftOut  []LeftOut
	Rows     int // number of sampled rows
}

// LeftOut is a column that the draft does not use.
type LeftOut struct {
	Column string `json:"column"`
	Why    string `json:"reason"`
}

// maxShownColumns bounds the columns that a NothingError names.
const maxShownColumns = 20

// NothingError says that no column of the files can become a feature.
type NothingError struct {
	Files   []source.Location
	LeftOut []LeftOut
}

func (e *NothingError) Error() string {
	var why strings.Builder
	for i, column := range e.LeftOut {
		if i == maxShownColumns {
			fmt.Fprintf(&why, "; and %d more", len(e.LeftOut)-i)
			break
		}
		fmt.Fprintf(&why, "; %s: %s", visibleName(column.Column), column.Why)
	}
	if len(e.LeftOut) == 0 {
		why.WriteString("; it has no columns")
	}
	names := make([]string, len(e.Files))
	for i, file := range e.Files {
		names[i] = file.String()
	}
	return fmt.Sprintf("%s: no pipeline can be drafted: no column can become a feature%s",
		strings.Join(names, ", "), why.String())
}

// New drafts a pipeline for files that belong to one data set.
func New(ctx context.Context, files []source.Location, o Options) (d *Draft, err error) {
	drive, err := host.OpenFiles(ctx, files, host.DriveOptions{
		Engine: host.EngineCPU, Source: o.Source, Text: o.Text, Sources: o.Sources,
	})
	if err != nil {
		return nil, err
	}
	manager, err := host.NewManager(host.Options{}, drive)
	if err != nil {
		return nil, errors.Join(err, drive.Close())
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	data, err := manager.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	guesses := guessColumns(data.Columns, logicalTypes(drive.Partitions()))
	sampled, err := newSampler(drive.Partitions(), data).look(ctx, guesses)
	if err != nil {
		return nil, err
	}
	decideOperators(guesses)
	d = &Draft{Rows: sampled}
	for _, g := range guesses {
		if g.role == roleLeftOut {
			d.LeftOut = append(d.LeftOut, LeftOut{Column: g.column.Name, Why: g.why})
		}
	}
	w := writer{files: files, rows: data.Manifest.Rows(), sampled: sampled, columns: data.Columns}
	if d.Document, err = w.document(guesses, d.LeftOut); err != nil {
		return nil, err
	}
	if d.Document == nil {
		return nil, &NothingError{Files: files, LeftOut: d.LeftOut}
	}
	if d.Spec, err = pipeline.Parse(d.Document); err != nil {
		return nil, fmt.Errorf("read the draft back: %w", err)
	}
	return d, nil
}

// pipelineName returns a name for the pipeline of files: the first file's, without its extension.
func pipelineName(files []source.Location) string {
	name := filepath.Base(files[0].String())
	name = strings.TrimSuffix(name, filepath.Ext(name))
	if name == "" || len(name) > program.MaxName {
		return "draft"
	}
	return strings.ToValidUTF8(name, "_")
}
