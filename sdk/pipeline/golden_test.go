package pipeline_test

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// tableI is the schema of the synthetic data sets of PreSto's RM2 to RM5: float32 dense features and lists of ids.
func tableI() []columntypes.Column {
	schema := []columntypes.Column{{Name: "label", Kind: program.Int64, Bits: 32}}
	for i := range 504 {
		schema = append(schema, columntypes.Column{Name: fmt.Sprintf("int_%d", i), Kind: program.Float32, Nullable: true})
	}
	for i := range 42 {
		schema = append(schema, columntypes.Column{Name: fmt.Sprintf("cat_%d", i), Kind: program.Int64, List: true,
			Nullable: true})
	}
	return schema
}

// zoo has a column of every kind.
func zoo() []columntypes.Column {
	return []columntypes.Column{
		{Name: "label", Kind: program.Int64, Bits: 32},
		{Name: "i", Kind: program.Int64},
		{Name: "i8", Kind: program.Int64, Bits: 8},
		{Name: "bool", Kind: program.Int64, Bits: 1},
		{Name: "u32", Kind: program.Int64, Bits: 32, Unsigned: true},
		{Name: "u64", Kind: program.Int64, Unsigned: true, Nullable: true},
		{Name: "i_null", Kind: program.Int64, Nullable: true},
		{Name: "f", Kind: program.Float32},
		{Name: "f_null", Kind: program.Float32, Nullable: true},
		{Name: "d", Kind: program.Float64},
		{Name: "s", Kind: program.Bytes},
		{Name: "s_null", Kind: program.Bytes, Nullable: true},
		{Name: "list", Kind: program.Int64, List: true, Nullable: true, ElementNullable: true},
		{Name: "flist", Kind: program.Float32, List: true},
		{Name: "slist", Kind: program.Bytes, List: true},
		{Name: "odd", Unsupported: errors.New("INT96 is not decoded")},
		{Name: "c_0", Kind: program.Int64}, {Name: "c_1", Kind: program.Int64}, {Name: "c_2", Kind: program.Int64},
		{Name: "c_10", Kind: program.Int64},
		{Name: "z_00", Kind: program.Int64}, {Name: "z_01", Kind: program.Int64},
		{Name: "a..b", Kind: program.Int64}, {Name: "a*b", Kind: program.Int64},
	}
}

// lower is parse, resolve and lower.
func lower(document string, schema []columntypes.Column) (*resolve.Resolved, *program.Program, error) {
	s, err := pipeline.Parse([]byte(document))
	if err != nil {
		return nil, nil, err
	}
	r, err := resolve.Pipeline(s, schema)
	if err != nil {
		return nil, nil, err
	}
	p, _, err := lowering.Lower(r)
	return r, p, err
}

// catalogueNames returns the names of the operators.
func catalogueNames() (names []string) {
	for _, o := range pipeline.Catalogue() {
		names = append(names, o.Name)
	}
	return names
}
