package manual

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sample = "# A document\n" + `
<!-- given:
touch day_0.parquet
-->
<!-- file: pipeline.yaml -->
` + "```yaml\nname: x\n```" + `

Type:

` + "```sh\necho one; export X=two\n```\n\n<!-- not run: needs a kernel -->\n```sh\nnvme connect\n```\n" + `
` + "```console\n$ echo $X; cat pipeline.yaml\ntwo\nname: ...\n$ printf 'a  1\\nb\\nc\\n'\na 1\n...\n```\n"

func TestParse(t *testing.T) {
	blocks, err := Parse(sample)
	require.NoError(t, err)
	require.Len(t, blocks, 4)
	assert.Equal(t, Block{Kind: "yaml", Line: 7, Text: "name: x\n", File: "pipeline.yaml",
		Given: "touch day_0.parquet\n"}, blocks[0])
	assert.Equal(t, Block{Kind: "sh", Line: 13, Text: "echo one; export X=two\n"}, blocks[1])
	assert.Equal(t, "needs a kernel", blocks[2].NotRun)
	assert.Equal(t, "console", blocks[3].Kind)
}

func TestParseRefusesWhatNoTestWouldRun(t *testing.T) {
	for document, want := range map[string]string{
		"```\nmillrace demo\n```\n":                  `line 1: a block of kind ""`,
		"```bash\nmillrace demo\n```\n":              `line 1: a block of kind "bash"`,
		"Type:\n\n    millrace demo\n":               "line 3: a command in an indented block",
		"```sh\nmillrace demo\n":                     "line 1: a block without an end",
		"<!-- file: x -->\n```sh\nls\n```\n":         "line 2: a block of commands cannot be the file x",
		"<!-- not run: why -->\nNo block follows.\n": "a comment at the end",
		"<!-- given:\nmillrace dataset generate\n":   "a comment without an end",
	} {
		_, err := Parse(document)
		assert.ErrorContains(t, err, want, document)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		want, got string
		match     bool
	}{
		{"two\n", "two\n", true},
		{"two", "two\n\n", true},
		{"two\n", "three\n", false},
		{"T ... rows/s\n", "T     512 rows/s\n", true},
		{"T ... rows/s\n", "T 512 rows/s\nmore\n", false},
		{"T ... rows/s\n...\n", "T 512 rows/s\nmore\nstill\n", true},
		{"...\nlast\n", "first\nlast\n", true},
		{"...\nlast\n", "first\nlast one\n", false},
		{"a.b\n", "axb\n", false},
	} {
		assert.Equal(t, c.match, Expectation{Want: c.want}.Match(c.got), "%q %q", c.want, c.got)
	}
}
