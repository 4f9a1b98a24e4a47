package columntypes

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Criteo's fields: the label, 13 integers, 26 ids.
const (
	criteoInts = 13
	criteoCats = 26
)

// TextSchema is the schema of Criteo's text rows: label (int32, required; none when labelAbsent, the 39-field form),
// int_0..int_12 (int32) and cat_0..cat_25 (int64 holding the unsigned 32-bit id), which may be null.
func TextSchema(labelAbsent bool) []Column {
	schema := criteoSchema(program.CriteoTSV, true)
	if labelAbsent {
		return schema[1:]
	}
	return schema
}

// BinarySchema is the schema of Criteo's binary rows: as TextSchema's, with a label and without nulls.
func BinarySchema() []Column { return criteoSchema(program.CriteoBinary, false) }

func criteoSchema(source program.Source, nullable bool) []Column {
	schema := []Column{{Name: "label", Source: source, Kind: program.Int64, Bits: 32}}
	for i := range criteoInts {
		schema = append(schema, Column{
			Name: fmt.Sprintf("int_%d", i), Source: source, Kind: program.Int64, Nullable: nullable,
			Field: uint16(1 + i), Bits: 32,
		})
	}
	for i := range criteoCats {
		schema = append(schema, Column{
			Name: fmt.Sprintf("cat_%d", i), Source: source, Kind: program.Int64, Nullable: nullable,
			Field: uint16(1 + criteoInts + i), Bits: 32, Unsigned: true,
		})
	}
	return schema
}
