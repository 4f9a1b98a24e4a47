package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// column is a columntypes.Column on the wire.
type column struct {
	Name            string         `json:"name"`
	Source          program.Source `json:"source"`
	Kind            program.Kind   `json:"kind"`
	List            bool           `json:"list,omitempty"`
	Nullable        bool           `json:"nullable,omitempty"`
	ElementNullable bool           `json:"element_nullable,omitempty"`
	Field           uint16         `json:"field,omitempty"`
	Bits            uint8          `json:"bits,omitempty"`
	Unsigned        bool           `json:"unsigned,omitempty"`
	Logical         string         `json:"logical,omitempty"`
	Unsupported     string         `json:"unsupported,omitempty"`
	Map             *mapping       `json:"map,omitempty"`
	Absent          *absence       `json:"absent,omitempty"`

	Null columntypes.NullType `json:"null_type,omitempty"`
}

// absence is a columntypes.Absence on the wire.
type absence struct {
	Partitions int    `json:"partitions"`
	Names      string `json:"names"`
}

// mapping is a columntypes.Map on the wire.
type mapping struct {
	Keys      string       `json:"keys"`
	Values    string       `json:"values"`
	Scores    string       `json:"scores,omitempty"`
	ScoreKind program.Kind `json:"score_kind,omitempty"`
	TextKeys  bool         `json:"text_keys,omitempty"`
}

// EncodeColumns writes columns as JSON: the field columns of apiv1.Schema. Equal columns give equal bytes.
func EncodeColumns(columns []columntypes.Column) ([]byte, error) {
	list := make([]column, len(columns))
	for i, c := range columns {
		list[i] = column{c.Name, c.Source, c.Kind, c.List, c.Nullable, c.ElementNullable, c.Field, c.Bits, c.Unsigned,
			c.Logical, "", nil, nil, c.Null}
		if c.Unsupported != nil {
			list[i].Unsupported = c.Unsupported.Error()
		}
		if c.Map.IsMap() {
			m := mapping(c.Map)
			list[i].Map = &m
		}
		if c.Absent.Partitions > 0 {
			a := absence(c.Absent)
			list[i].Absent = &a
		}
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode columns: %w", err)
	}
	return b, nil
}

// DecodeColumns reads what EncodeColumns writes. The reason why a column is not supported comes back as a text.
func DecodeColumns(b []byte) ([]columntypes.Column, error) {
	var list []column
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("decode columns: %w", err)
	}
	columns := make([]columntypes.Column, len(list))
	for i, c := range list {
		columns[i] = columntypes.Column{
			Name: c.Name, Source: c.Source, Kind: c.Kind, List: c.List, Nullable: c.Nullable,
			ElementNullable: c.ElementNullable,
			Field:           c.Field, Bits: c.Bits, Unsigned: c.Unsigned, Logical: c.Logical, Null: c.Null,
		}
		if c.Unsupported != "" {
			columns[i].Unsupported = errors.New(c.Unsupported)
		}
		if c.Map != nil && c.Map.Keys != "" {
			columns[i].Map = columntypes.Map(*c.Map)
		}
		if c.Absent != nil && c.Absent.Partitions > 0 {
			columns[i].Absent = columntypes.Absence(*c.Absent)
		}
	}
	return columns, nil
}
