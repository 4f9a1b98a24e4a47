package unit_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// only512 matches the registers that only instructions of AVX-512 have.
var only512 = regexp.MustCompile(`\b([XY](1[6-9]|2[0-9]|3[01])|Z[0-9]+|K[0-7])\b`)

// TestOnlyKernelsOfAVX512NeedIt reads what the generator found every function of the assembly to need, and the
// registers of its instructions. A machine with AVX-512 runs an instruction of AVX-512 in a kernel of AVX2 without
// complaint, so that no other test here would fail.
func TestOnlyKernelsOfAVX512NeedIt(t *testing.T) {
	files, err := filepath.Glob("*/*_amd64.s")
	require.NoError(t, err)
	kernels := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		needs, name := "", ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "// Requires: ") {
				needs = line
			}
			if strings.HasPrefix(line, "\t") && !strings.Contains(name, "512") && only512.MatchString(line) {
				t.Errorf("%s: %s has registers of AVX-512: %s", file, name, strings.TrimSpace(line))
			}
			rest, found := strings.CutPrefix(line, "TEXT ·")
			if !found {
				continue
			}
			kernels++
			name, _, _ = strings.Cut(rest, "(")
			if strings.Contains(needs, "AVX512") && !strings.Contains(name, "512") {
				t.Errorf("%s: %s needs %s", file, name, strings.TrimPrefix(needs, "// Requires: "))
			}
			needs = ""
		}
	}
	require.Greater(t, kernels, 40)
}
