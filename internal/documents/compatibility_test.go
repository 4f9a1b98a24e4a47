package documents

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/shared"
)

// forms returns the rows of the table of forms.
func forms(t *testing.T) [][]string {
	t.Helper()
	section, found := Section(read(t, "docs/compatibility.md"), "## The forms")
	require.True(t, found)
	rows := Rows(section)
	require.Greater(t, len(rows), 25)
	return rows
}

// TestEveryFormHasAGoldenFile: a form names its package, where its version is, and at least one golden file that lies
// in the testdata of that package, or is published in docs.
func TestEveryFormHasAGoldenFile(t *testing.T) {
	tree := NewTree(root)
	for _, row := range forms(t) {
		require.Len(t, row, 4, row[0])
		owner := CodeSpans(row[1])
		require.Len(t, owner, 1, row[0])
		assert.NoError(t, tree.Declares(owner[0]), row[0])
		for _, version := range CodeSpans(row[2]) {
			assert.NoError(t, tree.Declares(version), row[0])
		}
		links := Links(row[3])
		assert.NotEmpty(t, links, "%s has no golden file", row[0])
		for _, link := range links {
			published := !strings.Contains(link.Target, "/")
			file := path.Join("docs", link.Target)
			assert.True(t, published || strings.HasPrefix(file, owner[0]+"/testdata/"), "%s: %s lies in another package",
				row[0], file)
			assert.NotEmpty(t, read(t, file), file)
		}
	}
}

// versioned is the name of a golden file of a form: "token.v1.hex".
var versioned = regexp.MustCompile(`/testdata/[a-z_]+\.v[0-9]+(\.[0-9]+)?\.(hex|json|txt)$`)

// TestEveryGoldenFileBelongsToAForm: a versioned golden file that the document does not name holds a form that the
// document forgot.
func TestEveryGoldenFileBelongsToAForm(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		shared.Missing(t, "git does not list the files of the repository: %v", err)
	}
	var named []string
	for _, row := range forms(t) {
		for _, link := range Links(row[3]) {
			named = append(named, path.Join("docs", link.Target))
		}
	}
	found := 0
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSpace(file)
		if versioned.MatchString("/" + file) {
			found++
			assert.True(t, slices.Contains(named, file), "docs/compatibility.md does not name %s", file)
		}
	}
	assert.Greater(t, found, 30)
}

// printedVersion is a version that `millrace version` prints: a constant of the package that owns the form.
var printedVersion = regexp.MustCompile(`\b([a-z0-9]+)\.([A-Z]\w+)`)

// TestEveryPrintedVersionHasAForm: each version that `millrace version --output json` prints is that of a form in the
// table. The version of NVM Express itself is not a form of Millrace.
func TestEveryPrintedVersionHasAForm(t *testing.T) {
	_, body, found := strings.Cut(read(t, "cmd/millrace/version.go"), "func currentFormats() formatsOfData {")
	require.True(t, found)
	body, _, _ = strings.Cut(body, "\n}\n")
	var versions []string
	for _, row := range forms(t) {
		versions = append(versions, CodeSpans(row[2])...)
	}
	printed := 0
	for _, m := range printedVersion.FindAllStringSubmatch(body, -1) {
		if m[1] == "strconv" || m[1] == "fmt" || m[0] == "nvme.VersionSpec" {
			continue
		}
		printed++
		named := slices.ContainsFunc(versions, func(v string) bool {
			return strings.HasSuffix(v, "."+m[2]) && (m[1] == "apiv1" || strings.HasSuffix(path.Dir(v)+"/"+path.Base(v),
				"/"+m[0]))
		})
		assert.True(t, named, "docs/compatibility.md has no form with the version %s", m[0])
	}
	assert.Greater(t, printed, 15)
}
