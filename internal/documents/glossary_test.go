package documents

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entryPattern is an entry of the glossary: the word, its code, and what it is.
var entryPattern = regexp.MustCompile(`(?s)^\*\*([^*]+)\*\* \(([^)]*)\): (.+)$`)

// glossaryEntry is a word, the code that is the thing, and what the entry says.
type glossaryEntry struct {
	word, code, meaning string
}

// glossary returns the entries of docs/glossary.md, and fails where a paragraph is none.
func glossary(t *testing.T) []glossaryEntry {
	t.Helper()
	paragraphs := strings.Split(strings.TrimSpace(read(t, "docs/glossary.md")), "\n\n")
	var list []glossaryEntry
	for _, p := range paragraphs[2:] { // the title, and what the document is
		m := entryPattern.FindStringSubmatch(p)
		require.NotNil(t, m, "docs/glossary.md: no entry: %s", p)
		list = append(list, glossaryEntry{m[1], m[2], strings.ReplaceAll(m[3], "\n", " ")})
	}
	return list
}

// TestGlossaryNamesTheCode looks up every name, and holds the form: what a word is, and what it is not.
func TestGlossaryNamesTheCode(t *testing.T) {
	tree := NewTree(root)
	for _, e := range glossary(t) {
		names := CodeSpans(e.code)
		if e.code == "planned" {
			continue
		}
		assert.NotEmpty(t, names, "%s names no code", e.word)
		for _, name := range append(names, qualifiedNames(e.meaning)...) {
			assert.NoError(t, tree.Declares(name), "docs/glossary.md, %s: write the new name of what was renamed", e.word)
		}
		assert.Regexp(t, `(?:^|[.:;] )(?:Not |Nothing else |Which one )`, e.meaning, "%s: say what it is not", e.word)
		assert.True(t, strings.HasSuffix(e.meaning, "."), "%s: end with a full stop", e.word)
	}
}

// qualifiedNames returns the code spans of a text that name something of a package of the tree.
func qualifiedNames(text string) []string {
	return slices.DeleteFunc(CodeSpans(text), func(s string) bool {
		return !strings.Contains(s, "/") ||
			strings.Contains(s, "://")
	})
}

// TestGlossaryIsInOrder holds the alphabetical order, and the words that the documents and the code rest on.
func TestGlossaryIsInOrder(t *testing.T) {
	var words []string
	for _, e := range glossary(t) {
		words = append(words, e.word)
	}
	sorted := slices.Clone(words)
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	assert.Equal(t, sorted, words)
	assert.Equal(t, slices.Compact(slices.Clone(sorted)), sorted, "one word, one entry")
	for _, w := range []string{
		"cursor", "edition", "epoch", "extent", "fence", "generation", "grant", "image", "image slot", "job", "lease",
		"manifest", "memory range", "mini-batch", "output layout", "partition", "piece", "placement", "program",
		"rank", "region", "run", "session", "slice", "SLM", "split", "stream", "task", "token", "window", "worker",
	} {
		assert.Contains(t, words, w)
	}
}
