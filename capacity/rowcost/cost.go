package rowcost

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// Cost is what a row costs on average.
type Cost struct {
	Row     timing.Work // without Borders, which are loaded for a mini-batch
	Borders float64     // A mini-batch has these borders.
	Columns int         // The pipeline reads these columns of the files; a map is one.
	// Beyond are the units that the pipeline has and for which the model of drives has no stage, by name.
	Beyond  []string
	Assumes []string // what footers do not say, one line each
}

// Batch returns the work of a mini-batch.
func (c *Cost) Batch(rows int) timing.Work {
	n, w := float64(rows), c.Row
	return timing.Work{FlashBytes: n * w.FlashBytes, OutBytes: n * w.OutBytes, Decoded: n * w.Decoded,
		DecodedBytes: n * w.DecodedBytes, Bucketized: n * w.Bucketized, Borders: c.Borders, Hashed: n * w.Hashed,
		Logged: n * w.Logged}
}

// counter counts while it walks a program.
type counter struct {
	data    *Data
	columns map[string]*columntypes.Column // by leaf
	cost    Cost
	read    map[string]bool // names of columns
	idBytes float64
}

// Of returns the cost of a row of a lowered pipeline that was resolved against the data's columns. Errors wrap ErrData.
func Of(p *program.Program, d *Data) (*Cost, error) {
	if d.Rows == 0 {
		return nil, fmt.Errorf("%w: no rows in %s: a plan wants the bytes of a row", ErrData,
			quantity.Of(d.Files, "file"))
	}
	c := &counter{data: d, columns: make(map[string]*columntypes.Column), read: make(map[string]bool),
		idBytes: float64(p.Output.IDs.Bytes())}
	if p.Output.Weights {
		c.idBytes += weightBytes
	}
	columns := d.Columns()
	for i := range columns {
		info := &columns[i]
		for _, name := range []string{info.Name, info.Map.Keys, info.Map.Values, info.Map.Scores} {
			c.columns[name] = info
		}
	}
	c.output(&p.Output)
	for i := 0; i < len(p.Columns); {
		n := 1
		for i+n < len(p.Columns) && p.Columns[i+n].Part == program.GraphNext {
			n++
		}
		if err := c.take(p.Columns[i:i+n], p.GraphAt(i)); err != nil {
			return nil, err
		}
		i += n
	}
	c.cost.Columns = len(c.read)
	slices.Sort(c.cost.Beyond)
	return &c.cost, nil
}

// Bytes of a list's length, of a label and of a weight in a mini-batch.
const (
	lengthBytes = 4
	labelBytes  = 4
	weightBytes = 4
)

// output counts the tensors whose size does not depend on the data.
func (c *counter) output(o *program.Output) {
	c.cost.Row.OutBytes = float64(o.Dense) * float64(o.DenseType.Bytes())
	if o.Label {
		c.cost.Row.OutBytes += labelBytes
	}
	if !o.Fixed {
		c.cost.Row.OutBytes += lengthBytes * float64(o.Keys)
	}
}

// take counts a column, or the columns of a graph.
func (c *counter) take(columns []program.Column, g *program.Graph) error {
	lengths := make([]float64, len(columns))
	for i := range columns {
		var err error
		if lengths[i], err = c.decode(&columns[i]); err != nil {
			return err
		}
	}
	if g != nil {
		c.graph(columns, lengths, g)
		return nil
	}
	for _, s := range columns[0].Sinks {
		c.sink(&s, lengths[0])
	}
	return nil
}

// decode counts what the decoder does for a column, and returns the values that a row has of it: of a feature, where
// the column holds the values of a map.
func (c *counter) decode(column *program.Column) (length float64, err error) {
	l, info := c.data.leaves[column.Name], c.columns[column.Name]
	if l == nil || info == nil {
		return 0, fmt.Errorf("%w: the files' descriptions lack column %q, which the pipeline reads: describe the "+
			"files again with millrace dataset inspect", ErrData, column.Name)
	}
	rows := float64(c.data.Rows)
	c.read[info.Name] = true
	c.cost.Row.FlashBytes += float64(l.compressed) / rows
	if !column.List && column.LeafPart() == program.NoPart {
		c.decoded(column, info, l, 1, 0)
		return 1, nil
	}
	if column.LeafPart() != program.NoPart {
		return c.decodeMap(column, info, l), nil
	}
	length = float64(l.values-l.empty) / rows
	c.decoded(column, info, l, length, 1)
	if l.uncounted {
		c.assume("column %q: the files do not say how many of its lists are empty: each counts as one of one id",
			column.Name)
	}
	return length, nil
}

// decodeMap counts a leaf of a map. Every row counts as having the features.
func (c *counter) decodeMap(column *program.Column, info *columntypes.Column, l *leaf) (length float64) {
	rows := float64(c.data.Rows)
	lengths := 0.0
	entries := float64(1)
	if keys := c.data.leaves[info.Map.Keys]; keys != nil {
		entries = float64(keys.values)
	}
	if column.LeafPart() == program.MapKeys {
		lengths = 1
	} else if column.List {
		lengths = entries / rows
	}
	c.decoded(column, info, l, float64(l.values)/rows, lengths)
	if column.LeafPart() != program.MapValues {
		return 0
	}
	c.assume("map %q: footers do not say how many rows have a key: every row counts as having each key that the "+
		"pipeline names", info.Name)
	if !column.List {
		return 1
	}
	return float64(l.values) / max(entries, 1)
}

// decoded counts values and lengths that the decoder yields for a row.
func (c *counter) decoded(column *program.Column, info *columntypes.Column, l *leaf, values, lengths float64) {
	width := 8.0
	switch {
	case column.Kind == program.Float32, column.Kind == program.Int64 && info.Bits > 0 && info.Bits <= 32:
		width = 4
	case column.Kind == program.Bytes:
		width = float64(l.unpacked) / float64(max(l.values, 1))
	}
	c.cost.Row.Decoded += values + lengths
	c.cost.Row.DecodedBytes += values*width + lengths*lengthBytes
}

// sink counts a chain and what it writes.
func (c *counter) sink(s *program.Sink, length float64) {
	if length = c.chain(s.Ops, length); s.To == program.ToSparse {
		c.cost.Row.OutBytes += length * c.idBytes
	}
}

// assume adds a line, once.
func (c *counter) assume(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(c.cost.Assumes, line) {
		c.cost.Assumes = append(c.cost.Assumes, line)
	}
}

// beyond notes a unit for which the model has no stage.
func (c *counter) beyond(u program.Unit) {
	if name := u.String(); !slices.Contains(c.cost.Beyond, name) {
		c.cost.Beyond = append(c.cost.Beyond, name)
	}
}
