package unit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyKernelsOfAVX512NeedIt reads what the generator found every function of the assembly to need. A machine with
// AVX-512 runs an instruction of AVX-512 in a kernel of AVX2 without complaint, so that no other test here would fail.
func TestOnlyKernelsOfAVX512NeedIt(t *testing.T) {
	files, err := filepath.Glob("*/*_amd64.s")
	require.NoError(t, err)
	kernels := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		needs := ""
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "// Requires: ") {
				needs = line
			}
			name, found := strings.CutPrefix(line, "TEXT ·")
			if !found {
				continue
			}
			kernels++
			name, _, _ = strings.Cut(name, "(")
			if strings.Contains(needs, "AVX512") && !strings.Contains(name, "512") {
				t.Errorf("%s: %s needs %s", file, name, strings.TrimPrefix(needs, "// Requires: "))
			}
			needs = ""
		}
	}
	require.Greater(t, kernels, 40)
}
