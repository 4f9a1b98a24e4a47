package pipeline_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// refusalSchemas are the columns that the documents of testdata/refused/NAME.txt are lowered against.
var refusalSchemas = map[string]func() []columntypes.Column{
	"zoo": zoo, "maps": mapSchema, "lacking": lackingSchema, "annotated": annotatedColumns, "lists": listColumns,
}

// refusals calls yield with the documents of testdata/refused/NAME.txt, and returns the file with the errors that yield
// returns. A document is one line, in which \n ends a line; behind it come its errors, in lines that begin with a tab.
// Lines that begin with # are comments.
func refusals(t testing.TB, name string, yield func(document string) error) (answered string) {
	t.Helper()
	script, err := os.ReadFile("testdata/refused/" + name + ".txt")
	require.NoError(t, err)
	var out strings.Builder
	for line := range strings.Lines(string(script)) {
		switch line[0] {
		case '\t':
		case '#':
			out.WriteString(line)
		default:
			err := yield(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n"))
			out.WriteString(line + strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("\n%v", err), "\npipeline: ", "\n"),
				"\n", "\n\t")[1:] + "\n")
		}
	}
	return out.String()
}

// TestRefusals compares the whole error of each document that is refused, with its places.
func TestRefusals(t *testing.T) {
	for name, schema := range refusalSchemas {
		t.Run(name, func(t *testing.T) {
			goldenfile.Text(t, "testdata/refused/"+name+".txt", refusals(t, name, func(document string) error {
				_, _, err := lower(document, schema())
				var list problem.Errors
				require.ErrorAs(t, err, &list, document)
				return err
			}))
		})
	}
}
