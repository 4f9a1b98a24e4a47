package goldenfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts runs each script testdata/*.txt as a test of its own. run returns a script with the results as they came,
// which must be the script.
func Scripts(t *testing.T, run func(t *testing.T, script string) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata has no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			Text(t, file, run(t, string(script)))
		})
	}
}

// Blocks runs a script of blocks with an empty line between two. A block is some lines with commands, of which those
// that begin with # are comments, a line of four dashes, and the results of the commands. Without results it is
// commands alone, or has "ok".
func Blocks(script string, do func(command string) (result string)) string {
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(script, "\n"), "\n\n") {
		if i > 0 {
			out.WriteString("\n")
		}
		commands, _, answered := strings.Cut(block, "\n----")
		result := ""
		for line := range strings.SplitSeq(commands, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				result += do(line)
			}
		}
		out.WriteString(commands + "\n")
		if answered && result == "" {
			result = "ok\n"
		}
		if result != "" {
			out.WriteString("----\n" + result)
		}
	}
	return out.String()
}
