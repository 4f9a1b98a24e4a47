package partitionfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
)

// Description describes the contents of a partition file.
type Description struct {
	Path      string   `json:"path"`
	Format    Format   `json:"format"`
	Rows      int64    `json:"rows"`
	Bytes     int64    `json:"bytes"`
	RowGroups []int64  `json:"row_group_rows"`
	Digest    string   `json:"content_sha256"`
	Columns   []Column `json:"columns"`
}

// Column is a column of a partition file.
type Column struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Nullable   bool   `json:"nullable"`
	Codec      string `json:"codec,omitempty"`
	Compressed int64  `json:"compressed_bytes"`
	Unpacked   int64  `json:"uncompressed_bytes"`
	// PresentRows is how many rows have a value: a number that is not null, a list with an element, a map with an entry.
	// It is nil if that is not known without reading the values.
	PresentRows *int64 `json:"present_rows,omitempty"`
	Refused     string `json:"refusal_reason,omitempty"` // why a pipeline cannot read it
	// Schema and Leaves are there for columns of Parquet files that a pipeline can read.
	Schema *Schema `json:"schema,omitempty"`
	Leaves []Leaf  `json:"leaves,omitempty"`
}

// CheckReadable refuses a file none of whose columns a pipeline could read.
func (v *Description) CheckReadable() error {
	for _, k := range v.Columns {
		if k.Refused == "" {
			return nil
		}
	}
	if len(v.Columns) == 0 {
		return nil
	}
	return fmt.Errorf("%s: no column can be read: %s: %s", v.Path, v.Columns[0].Name, v.Columns[0].Refused)
}

// Counting says whether rows with a value are counted by reading where files do not say how many there are.
type Counting bool

// Describe reads the description of the file at path. The format must be known; options say how text is read.
func Describe(
	ctx context.Context, path string, fileFormat Format, options text.Options, count Counting,
) (v Description, err error) {
	parser, known := fileFormat.Source()
	if !known {
		return v, fmt.Errorf("%s: no format is called %q", path, fileFormat)
	}
	err = usePartition(ctx, path, parser, options, func(p *partition.Partition) (err error) {
		v, err = describePartition(ctx, p, path, fileFormat, options, count)
		return err
	})
	return v, err
}

// usePartition opens the file at path for as long as a function uses it.
func usePartition(ctx context.Context, path string, parser program.Source, options text.Options,
	use func(*partition.Partition) error) (err error) {
	f, state, err := openfiles.OpenRegular(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p, err := partition.Open(ctx, filepath.Base(path), f, state.Size, parser, partition.Options{Text: options})
	if err != nil {
		return err
	}
	return use(p)
}

// describePartition returns what an open partition holds.
func describePartition(
	ctx context.Context, p *partition.Partition, path string, fileFormat Format, options text.Options, count Counting,
) (v Description, err error) {
	d := p.Describe()
	v = Description{
		Path: path, Format: fileFormat, Rows: d.Rows, Bytes: d.Bytes, RowGroups: d.RowGroups,
		Digest: d.Content.String(),
	}
	columns, _ := schema.Columns(p, options)
	leaf := 0 // of the file, that the column begins with
	for _, k := range columns {
		if p.File != nil && leaf == len(p.File.Leaves) && k.Unsupported == nil {
			continue // a leaf of a map that is described already
		}
		x := Column{Name: k.Name, Type: typeName(k.Kind, k.List), Nullable: k.Nullable}
		if k.Unsupported != nil {
			x.Refused = k.Unsupported.Error()
		}
		if p.File != nil && leaf < len(p.File.Leaves) {
			n := 1
			for leaf+n < len(p.File.Leaves) && p.File.Leaves[leaf+n].Part > format.MapKeys {
				n++
			}
			x.Type = leavesType(p.File.Leaves[leaf : leaf+n])
			if x.PresentRows = presentRows(p.File, leaf); x.PresentRows == nil && bool(count) {
				if x.PresentRows, err = countRows(ctx, p, p.File, leaf); err != nil {
					return v, fmt.Errorf("%s: %w", path, err)
				}
			}
			for g := range p.File.RowGroups {
				for _, chunk := range p.File.RowGroups[g].Columns[leaf : leaf+n] {
					x.Codec = chunk.Codec.String()
					x.Compressed += chunk.Compressed
					x.Unpacked += chunk.Uncompressed
				}
			}
			if k.Unsupported == nil {
				x.Schema, x.Leaves = schemaOf(&k), leavesOf(p.File, &k, leaf, n)
			}
			leaf += n
		} else if p.File != nil {
			x.Type = "map"
		} else if !k.Nullable {
			x.PresentRows = &v.Rows
		}
		v.Columns = append(v.Columns, x)
	}
	return v, nil
}

// leavesType is the type of a column of a Parquet file: of its leaf, or of a map's leaves.
func leavesType(leaves []format.Leaf) string {
	name := func(l *format.Leaf) string {
		if l.Logical != "" {
			return l.Physical.String() + " " + l.Logical
		}
		return l.Physical.String()
	}
	if len(leaves) == 1 {
		switch depth := leaves[0].MaxRep; {
		case depth > 1:
			return "list of " + strings.Repeat("lists of ", int(depth)-1) + name(&leaves[0])
		case leaves[0].List:
			return "list of " + name(&leaves[0])
		}
		return name(&leaves[0])
	}
	values := name(&leaves[1])
	switch {
	case len(leaves) == 3:
		values = "list of " + values + " scored by " + name(&leaves[2])
	case leaves[1].MaxRep == 2:
		values = "list of " + values
	}
	return "map of " + name(&leaves[0]) + " to " + values
}

func typeName(k program.Kind, list bool) string {
	name := map[program.Kind]string{
		program.Int64: "int64", program.Float32: "float32", program.Float64: "float64", program.Bytes: "bytes",
	}[k]
	if list {
		return "list of " + name
	}
	return name
}
