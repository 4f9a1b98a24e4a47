package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// all returns the names of all documents.
func all(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	for _, d := range docs {
		list = append(list, "docs/"+filepath.Base(d))
	}
	require.Greater(t, len(list), 18)
	return list
}

// TestLinksLeadSomewhere follows every link of every document to its file and its heading.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, document := range all(t) {
		text := read(t, document)
		for _, link := range Links(text) {
			links++
			file, anchor, _ := strings.Cut(link.Target, "#")
			target := document
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(document), filepath.FromSlash(file)))
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); !assert.NoError(t, err, "%s:%d", document,
				link.Line) {
				continue
			}
			if anchor != "" {
				assert.True(t, Anchors(read(t, target))[anchor], "%s:%d: %s has no heading #%s", document, link.Line, target,
					anchor)
			}
		}
	}
	assert.Greater(t, links, 50)
}

// placeInTree is a code span that names something of the repository: "sdk/dataset", "fpga/image/layout.go",
// "trainmgr/allocation.Allocation".
var placeInTree = regexp.MustCompile(`^(nvme|fpga|sdk|host|trainmgr|bench|internal|cmd|docs|tools)(/[\w.-]+)+$`)

// TestDocumentsNameWhatThereIs: a path or a name of the code between backquotes exists.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	tree := NewTree(root)
	named := 0
	for _, document := range all(t) {
		for _, span := range CodeSpans(read(t, document)) {
			if !placeInTree.MatchString(span) {
				continue
			}
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(span))); err != nil {
				assert.NoError(t, tree.Declares(span), "%s: write the new name of what was renamed or moved", document)
			}
		}
	}
	assert.Greater(t, named, 150)
}

// TestReadMeNamesEveryDocument: a document that no other document leads to is not read.
func TestReadMeNamesEveryDocument(t *testing.T) {
	readme := read(t, "README.md")
	for _, document := range all(t) {
		if document != "README.md" {
			assert.True(t, strings.Contains(readme, "("+document+")"), "README.md does not lead to %s", document)
		}
	}
}

// TestRowsHaveTheCellsOfTheirHead: a row with more cells than its table's head is two rows on one line, and what is
// beyond the head is not shown.
func TestRowsHaveTheCellsOfTheirHead(t *testing.T) {
	rows := 0
	for _, document := range all(t) {
		head := 0
		eachLine(read(t, document), func(line string, number int) {
			if !strings.HasPrefix(line, "|") {
				head = 0
				return
			}
			cells := countCells(line)
			if head == 0 {
				head = cells
				return
			}
			rows++
			assert.Equal(t, head, cells, "%s:%d", document, number)
		})
	}
	assert.Greater(t, rows, 1000)
}

// countCells returns the number of cells of a table's line. A bar in a code span or behind a backslash ends no cell.
func countCells(line string) int {
	return strings.Count(strings.ReplaceAll(codePattern.ReplaceAllString(line, "x"), `\|`, ""), "|") - 1
}

func TestCountCells(t *testing.T) {
	assert.Equal(t, 2, countCells("| a | `b | c` |"))
	assert.Equal(t, 3, countCells("| | | |"))
	assert.Equal(t, 1, countCells(`| a \| b |`))
	assert.Equal(t, 4, countCells("| a | b | | c |"))
}

func TestLinks(t *testing.T) {
	text := "# A b\n[one](x.md#y) and [two](https://z)\n```sh\n[three](no.md)\n```\n[four](#a-b) [five](mailto:x@y)\n"
	assert.Equal(t, []Link{{"x.md#y", 2}, {"#a-b", 6}}, Links(text))
}

func TestSection(t *testing.T) {
	text := "# T\n\n## A\none\n### B\ntwo\n```sh\n## not a heading\n```\n## C\nthree\n"
	got, ok := Section(text, "## A")
	assert.True(t, ok)
	assert.Equal(t, "one\n### B\ntwo\n```sh\n## not a heading\n```\n", got)
	got, ok = Section(text, "## C")
	assert.True(t, ok)
	assert.Equal(t, "three\n", got)
	_, ok = Section(text, "## D")
	assert.False(t, ok)
}

func TestRows(t *testing.T) {
	assert.Equal(t, [][]string{{"1", "`a`"}, {"2", ""}, {"x"}},
		Rows("| n | what |\n|---|---|\n| 1 | `a` |\n| 2 | |\n\ntext\n| h |\n| --- |\n| x |\n"))
	assert.Equal(t, []string{"a b", "c"}, CodeSpans("x `a b` y `c`"))
}

func TestAnchors(t *testing.T) {
	assert.Equal(t, map[string]bool{"t-p-and-tp": true, "why-tar": true},
		Anchors("# T, P and T/P\n## Why `tar`?\n```\n# no\n```\n"))
}

func TestDeclares(t *testing.T) {
	tree := NewTree(root)
	for _, name := range []string{
		"sdk/dataset", "sdk/dataset.Token", "sdk/dataset.Token.MarshalBinary", "sdk/dataset.Token.Mark",
		"sdk/dataset.ErrToken",
		"fpga/program.Op", "host/volume.Volume.appending", "host/api.Stream.Next",
	} {
		assert.NoError(t, tree.Declares(name))
	}
	for _, name := range []string{"sdk/datasets", "docs", "sdk/dataset.Tokens", "sdk/dataset.Token.Marks",
		"internal/documents.TestDeclares"} {
		assert.Error(t, tree.Declares(name), name)
	}
}
