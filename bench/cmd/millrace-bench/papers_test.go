package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/bench/papers"
)

// TestBenchPapersRefuses checks the flags of bench papers. What it measures is tested by the package papers.
func TestBenchPapersRefuses(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--paper", "nobody", "want one of"},
		{"--results", filepath.Join(t.TempDir(), "none"), "is not a folder"},
		{"--page", "page.md", "--page wants --results"},
		{"--timing", "smartssd", "only native is possible here"},
	} {
		refuses(t, c.says, "papers", c.flag, c.value)
	}
}

func TestPapersCommand(t *testing.T) {
	assert.Equal(t, "millrace bench papers", papersCommand(papers.Options{}))
	assert.Equal(t, "millrace bench papers --paper presto --quick",
		papersCommand(papers.Options{Papers: []string{"presto"}, Quick: true}))
}
