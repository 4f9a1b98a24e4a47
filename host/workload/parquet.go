package workload

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// ordered is a group whose fields keep their order; parquet.Group sorts them by name.
type ordered struct {
	parquet.Group
	names []string
}

func (o ordered) Fields() []parquet.Field {
	place := make(map[string]int, len(o.names))
	for i, n := range o.names {
		place[n] = i
	}
	fields := o.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int { return place[a.Name()] - place[b.Name()] })
	return fields
}

// schemaOf returns the schema of the columns.
func schemaOf(name string, cols []column, codecName, encoding string) (*parquet.Schema, error) {
	codec, err := codecOf(codecName)
	if err != nil {
		return nil, err
	}
	leaf := func(t parquet.Type) parquet.Node {
		n := parquet.Compressed(parquet.Leaf(t), codec)
		if encoding == "dictionary" {
			return parquet.Encoded(n, &parquet.RLEDictionary)
		}
		return parquet.Encoded(n, &parquet.Plain)
	}
	group := ordered{Group: parquet.Group{}}
	for _, c := range cols {
		var n parquet.Node
		switch c.kind {
		case labelColumn:
			n = leaf(parquet.Int32Type)
		case intColumn:
			n = parquet.Optional(leaf(parquet.Int32Type))
		case floatColumn:
			n = parquet.Optional(leaf(parquet.FloatType))
		case idColumn:
			n = parquet.Optional(leaf(parquet.Int64Type))
		case hexColumn:
			n = parquet.Optional(leaf(parquet.String().Type()))
		case keysColumn:
			value := leaf(parquet.FloatType)
			if c.features[0].kind == listColumn {
				value = parquet.List(leaf(parquet.Int64Type))
			}
			n = parquet.Optional(parquet.Map(leaf(parquet.Int32Type), value))
		case valuesColumn:
			continue // with the keys
		case listColumn:
			n = parquet.Optional(parquet.List(parquet.Optional(leaf(parquet.Int64Type))))
		}
		group.Group[c.name] = n
		group.names = append(group.names, c.name)
	}
	return parquet.NewSchema(name, group), nil
}

// generatorVersion changes when the same options give other bytes.
const generatorVersion = "1.0.0"

// pageBuffer bounds the size of pages by what a row group can fill, because parquet-go allocates a required column's
// page whole.
func (g *generator) pageBuffer() int {
	perRow := 32 // a value, its level and parquet-go's index of the row
	if g.Model.Lists {
		perRow = maxLength * 16
	}
	if g.Maps {
		perRow *= g.Model.Sparse
	}
	return int(min(int64(g.PageBytes), int64(g.RowGroupRows)*int64(perRow)+4096))
}

// writerOptions returns the options with which every file is written.
func (g *generator) writerOptions() []parquet.WriterOption {
	return []parquet.WriterOption{
		g.schema,
		parquet.PageBufferSize(g.pageBuffer()),
		parquet.DataPageVersion(g.PageVersion),
		parquet.DictionaryMaxBytes(dictionaryMaxBytes),
		// The default of parquet-go names its build, so that files of two builds would differ.
		parquet.CreatedBy("millrace-workload", generatorVersion, "none"),
	}
}

// write writes rows [first, end) of the data set as one file, column by column within a row group, and returns the
// rows of each row group.
func (g *generator) write(ctx context.Context, out io.Writer, first, end int64) ([]int64, error) {
	options := append(g.writerOptions(), parquet.KeyValueMetadata("millrace.workload",
		fmt.Sprintf(`{"model":%q,"seed":%d,"coverage":%v,"first_row":%d,"version":%q}`, g.Model.Name, g.Seed,
			g.Model.Coverage, first, generatorVersion)))
	if g.Maps {
		options = append(options, parquet.KeyValueMetadata("millrace.workload.maps", "true"))
	}
	w := parquet.NewGenericWriter[any](out, options...)
	groups := []int64{}
	var values []parquet.Value
	for from := first; from < end; from += int64(g.RowGroupRows) {
		to := min(from+int64(g.RowGroupRows), end)
		writers := w.ColumnWriters()
		if len(writers) != len(g.columns) {
			return nil, fmt.Errorf("the schema has %d leaves, want %d", len(writers), len(g.columns))
		}
		for i := range g.columns {
			for row := from; row < to; {
				if err := ctx.Err(); err != nil {
					return nil, context.Cause(ctx)
				}
				block := row / blockRows
				start := block * blockRows
				stop := min(start+blockRows, to)
				values = g.columns[i].appendRows(values[:0], uint64(block), int(row-start), int(stop-start))
				if _, err := writers[i].WriteRowValues(values); err != nil {
					return nil, fmt.Errorf("column %s: %w", g.columns[i].name, err)
				}
				row = stop
			}
		}
		if err := w.Flush(); err != nil {
			return nil, fmt.Errorf("row group %d: %w", len(groups), err)
		}
		groups = append(groups, to-from)
		g.progress(to - from)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	return groups, nil
}
