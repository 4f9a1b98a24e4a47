package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
)

// folder of the guests, found once a process. A test that needs it and cannot have it fails with the error.
var folder = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("MILLRACE_GUESTS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "packages")); err != nil {
			return "", fmt.Errorf("MILLRACE_GUESTS: %w: run .ci/kernel with it set", err)
		}
		return dir, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("bash", filepath.Join(root, ".ci", "kernel"))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("set guests up with .ci/kernel: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
})

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = up
	}
}

// Need skips the test unless the kernel tier was asked for with MILLRACE_KERNEL=1, and returns the guests' folder.
func Need(t testing.TB) string {
	t.Helper()
	if os.Getenv("MILLRACE_KERNEL") != "1" {
		t.Skip("boots guests: set MILLRACE_KERNEL=1 (make test does where .ci/kernel succeeds)")
	}
	dir, err := folder()
	if err != nil {
		t.Fatalf("the kernel tier was asked for and cannot run: %v", err)
	}
	return dir
}

// Kernels returns the kernel series that there are guests of, such as 6.1 and 6.12, oldest first. There is at least
// one, or the test fails.
func Kernels(t testing.TB) []string {
	t.Helper()
	dir := filepath.Join(Need(t), "kernels")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("no kernels in %s (%v): remove the folder above and run .ci/kernel", dir, err)
	}
	var series []string
	for _, e := range entries {
		series = append(series, e.Name())
	}
	sort.Slice(series, func(i, j int) bool { return older(series[i], series[j]) })
	return series
}

// older compares versions number by number: 6.1 before 6.12 before 6.2 would be wrong, 6.1, 6.2, 6.12 is right.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if as[i] != bs[i] {
			if len(as[i]) != len(bs[i]) {
				return len(as[i]) < len(bs[i])
			}
			return as[i] < bs[i]
		}
	}
	return len(as) < len(bs)
}
