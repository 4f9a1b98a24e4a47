package unit_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mutant is a small wrong edit of a kernel: old, which occurs once in file, becomes new.
type mutant struct{ File, Old, New string }

func mutants(t *testing.T) []mutant {
	data, err := os.ReadFile("testdata/mutants.json")
	require.NoError(t, err)
	var list []mutant
	require.NoError(t, json.Unmarshal(data, &list))
	require.NotEmpty(t, list)
	return list
}

// The list keeps up with the kernels: an edit that no longer applies proves nothing.
func TestMutantsApply(t *testing.T) {
	for _, m := range mutants(t) {
		source, err := os.ReadFile(m.File)
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count(string(source), m.Old), "%s: %q occurs once", m.File, m.Old)
		assert.NotEqual(t, m.Old, m.New)
	}
}

// TestMutantsFail edits the kernels one mutant at a time, in an overlay, and wants the tests of the kernel's package
// to fail each time: MILLRACE_MUTANTS=1 go test ./fpga/unit -run Mutants. It takes about a CPU second a mutant.
func TestMutantsFail(t *testing.T) {
	if os.Getenv("MILLRACE_MUTANTS") == "" {
		t.Skip("set MILLRACE_MUTANTS=1 to test the tests with mutated kernels")
	}
	list := mutants(t)
	work := make(chan mutant)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for m := range work {
				testMutant(t, m)
			}
		})
	}
	for _, m := range list {
		work <- m
	}
	close(work)
	wait.Wait()
	t.Logf("%d mutants", len(list))
}

func testMutant(t *testing.T, m mutant) {
	path, err := filepath.Abs(m.File)
	if !assert.NoError(t, err) {
		return
	}
	source, err := os.ReadFile(path)
	if !assert.NoError(t, err) {
		return
	}
	dir, err := os.MkdirTemp(t.TempDir(), "mutant")
	if !assert.NoError(t, err) {
		return
	}
	edited, overlay := filepath.Join(dir, filepath.Base(path)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: edited}})
	if !assert.NoError(t, err) ||
		!assert.NoError(t, os.WriteFile(edited, []byte(strings.Replace(string(source), m.Old, m.New, 1)), 0o600)) ||
		!assert.NoError(t, os.WriteFile(overlay, replace, 0o600)) {
		return
	}
	text, err := testOverlay(t.Context(), "./"+filepath.ToSlash(filepath.Dir(m.File)), overlay)
	switch {
	case err == nil:
		t.Errorf("%s: the tests pass with %q for %q", m.File, m.New, m.Old)
	case strings.Contains(text, "[build failed]") || !strings.Contains(text, "FAIL"):
		t.Errorf("%s: %q for %q has no result: %v\n%s", m.File, m.New, m.Old, err, text)
	}
}

// testOverlay runs the tests of a package with an overlay, and returns what they print. A mutant may loop, so a process
// has a limit of processor time. A limit of time by the clock would also end tests whose machine is busy, which says
// nothing of the mutant; the one here is for a mutant that waits for ever.
func testOverlay(ctx context.Context, pkg, overlay string) (text string, err error) {
	// Shrinking a failure, and noting it, is useless here.
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -t 30 && exec "$@"`, "sh", "go", "test", "-overlay", overlay,
		"-vet=off", "-ldflags=-s -w", "-failfast", "-timeout=10m", pkg, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
