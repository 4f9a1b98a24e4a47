package partitionfile

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// Schema describes a column as a pipeline needs to know it. A program that has a file's description can resolve a
// pipeline without the file.
type Schema struct {
	Kind            string     `json:"kind"` // int64, float32, float64 or bytes
	List            bool       `json:"list,omitempty"`
	ElementNullable bool       `json:"element_nullable,omitempty"`
	Bits            uint8      `json:"bits,omitempty"`
	Unsigned        bool       `json:"unsigned,omitempty"`
	Logical         string     `json:"logical,omitempty"`
	Map             *MapSchema `json:"map,omitempty"` // nil: the column is not a map
}

// MapSchema names the leaves of a map.
type MapSchema struct {
	Keys      string `json:"keys"`
	Values    string `json:"values"`
	Scores    string `json:"scores,omitempty"`
	ScoreKind string `json:"score_kind,omitempty"`
	TextKeys  bool   `json:"text_keys,omitempty"`
}

// Leaf is what the footer of a Parquet file says of one leaf of a column, over all row groups.
type Leaf struct {
	Name       string `json:"name"` // as a program names the column that reads it
	Compressed int64  `json:"compressed_bytes"`
	Unpacked   int64  `json:"uncompressed_bytes"`
	Values     int64  `json:"values"` // with nulls, and one for each list that is empty or null
}

// schemaOf returns the schema of a column that pipelines can read.
func schemaOf(c *columntypes.Column) *Schema {
	s := &Schema{Kind: c.Kind.String(), List: c.List, ElementNullable: c.ElementNullable, Bits: c.Bits,
		Unsigned: c.Unsigned, Logical: c.Logical}
	if c.Map.IsMap() {
		s.Map = &MapSchema{Keys: c.Map.Keys, Values: c.Map.Values, Scores: c.Map.Scores, TextKeys: c.Map.TextKeys}
		if c.Map.Scores != "" {
			s.Map.ScoreKind = c.Map.ScoreKind.String()
		}
	}
	return s
}

// leavesOf returns what a file says of the leaves of a column: n of them, from leaf on.
func leavesOf(f *format.File, c *columntypes.Column, leaf, n int) []Leaf {
	leaves := make([]Leaf, n)
	for i := range leaves {
		l := &leaves[i]
		if l.Name = c.Name; c.Map.IsMap() {
			l.Name = f.Leaves[leaf+i].Path
		}
		for g := range f.RowGroups {
			chunk := &f.RowGroups[g].Columns[leaf+i]
			l.Compressed += chunk.Compressed
			l.Unpacked += chunk.Uncompressed
			l.Values += chunk.NumValues
		}
	}
	return leaves
}

// Info returns the column as a pipeline needs to know it. A column that pipelines cannot read has its reason. It is an
// error if the description says neither: an earlier version wrote it, or another program.
func (c *Column) Info() (columntypes.Column, error) {
	v := columntypes.Column{Name: c.Name, Source: program.Parquet, Nullable: c.Nullable}
	s := c.Schema
	switch {
	case c.Refused != "":
		v.Unsupported = fmt.Errorf("%s", c.Refused)
		return v, nil
	case s == nil:
		return v, fmt.Errorf("the description of column %q has no schema: make it again with millrace dataset inspect",
			c.Name)
	}
	var err error
	if v.Kind, err = parseKind(c.Name, s.Kind); err != nil {
		return v, err
	}
	v.List, v.ElementNullable, v.Bits, v.Unsigned, v.Logical = s.List, s.ElementNullable, s.Bits, s.Unsigned, s.Logical
	if m := s.Map; m != nil {
		v.Map = columntypes.Map{Keys: m.Keys, Values: m.Values, Scores: m.Scores, TextKeys: m.TextKeys}
		if m.Keys == "" || m.Values == "" {
			return v, fmt.Errorf("the description of column %q is a map without names of its leaves", c.Name)
		}
		if m.Scores != "" {
			if v.Map.ScoreKind, err = parseKind(c.Name, m.ScoreKind); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// parseKind returns the kind of a name.
func parseKind(column, name string) (program.Kind, error) {
	for _, k := range []program.Kind{program.Int64, program.Float32, program.Float64, program.Bytes} {
		if k.String() == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("the description of column %q has the kind %q, want int64, float32, float64 or bytes", column,
		name)
}
