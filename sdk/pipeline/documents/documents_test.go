package documents

import (
	"go/format"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/internal/goldenfile"
)

// TestDocuments compares the documents of the tree with what the catalogue says.
func TestDocuments(t *testing.T) {
	functions, err := goOperators()
	require.NoError(t, err)
	for path, document := range map[string][]byte{
		"../../../docs/operators.md": operatorManual(), "../../../docs/pipeline.schema.json": jsonSchema(),
		"../../python/src/millrace/operators.py": pythonOperators(), "../operators.go": functions,
	} {
		goldenfile.Text(t, path, string(document))
	}
}

// TestWordsOfGo makes the function of an operator whose parameters have names that Go reserves, or that the function
// itself uses.
func TestWordsOfGo(t *testing.T) {
	var b strings.Builder
	writeGo(&b, &catalogue.Entry{Name: "toy", Summary: "Tests.", Params: []catalogue.Param{
		{Name: "type", Type: catalogue.ParamText}, {Name: "range", Type: catalogue.ParamInteger},
		{Name: "string", Type: catalogue.ParamText}, {Name: "options", Type: catalogue.ParamInteger},
		{Name: "select", Type: catalogue.ParamText, Optional: true},
	}})
	assert.Contains(t, b.String(), "func Toy(typeValue string, rangeValue int64, stringValue string, optionsValue int64, "+
		"options ...Arg) Op {")
	source, err := format.Source([]byte("package pipeline\n" + b.String()))
	require.NoError(t, err)
	assert.Contains(t, string(source), `With("range", Int(rangeValue))`)
}
