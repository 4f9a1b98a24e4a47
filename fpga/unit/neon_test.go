package unit_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// neonWord matches an instruction that Go's assembler has no mnemonic for: its encoding, and Arm's text.
var neonWord = regexp.MustCompile(`^\tWORD \$(0x[0-9a-f]{8}) // (.+)$`)

// neonWords returns the encodings in the assembly of arm64, by text.
func neonWords(t *testing.T) map[string]string {
	files, err := filepath.Glob("*/*_arm64.s")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	words := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "\tWORD") {
				continue
			}
			m := neonWord.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			require.NotNil(t, m, "%s: %s", file, line)
			if other, found := words[m[2]]; found {
				require.Equal(t, other, m[1], "%s: %s has two encodings", file, m[2])
			}
			words[m[2]] = m[1]
		}
	}
	return words
}

// TestNEONWordsAreWhatLLVMWrites compares the instructions that fpga/unit/_gen encodes itself with what LLVM's
// assembler makes of their text. testdata/neon.txt keeps LLVM's words: MILLRACE_UPDATE=1 writes it with llvm-mc-19, of
// Debian's package llvm-19.
func TestNEONWordsAreWhatLLVMWrites(t *testing.T) {
	const kept = "testdata/neon.txt"
	words := neonWords(t)
	if os.Getenv("MILLRACE_UPDATE") != "" {
		texts := slices.Sorted(maps.Keys(words))
		cmd := exec.CommandContext(context.Background(), "llvm-mc-19", "-triple=aarch64", "-show-encoding")
		cmd.Stdin = strings.NewReader(strings.Join(texts, "\n") + "\n")
		out, err := cmd.Output()
		require.NoError(t, err)
		bytes := regexp.MustCompile(`encoding: \[0x(..),0x(..),0x(..),0x(..)\]`)
		encodings := bytes.FindAllStringSubmatch(string(out), -1)
		require.Len(t, encodings, len(texts))
		var b strings.Builder
		for i, e := range encodings {
			fmt.Fprintf(&b, "0x%s%s%s%s %s\n", e[4], e[3], e[2], e[1], texts[i])
		}
		require.NoError(t, os.WriteFile(kept, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(kept)
	require.NoError(t, err)
	llvm := map[string]string{}
	for line := range strings.Lines(string(text)) {
		word, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		llvm[text] = word
	}
	require.Equal(t, llvm, words, "MILLRACE_UPDATE=1 go test ./fpga/unit -run NEON")
}
