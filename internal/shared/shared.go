// Package shared finds the reference material that lies beside the project: golden vectors and data that tests
// read and that never enter the repository.
//
// The folder is ../shared beside the project's root, or the one that MILLRACE_SHARED names. Where it is absent a
// test that needs it skips; with CI=true it fails instead, so that a missing tier cannot go unnoticed.
package shared

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Path returns the absolute path of name inside the shared folder.
func Path(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("MILLRACE_SHARED")
	if root == "" {
		root = filepath.Join(filepath.Dir(projectRoot(t)), "shared")
	}
	p := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(p); err != nil {
		Missing(t, "shared data %q is absent: put the shared folder beside the project or name it in MILLRACE_SHARED",
			name)
	}
	return p
}

// projectModule begins the go.mod of the project's root. Folders below it have modules of their own.
const projectModule = "module github.com/millrace/millrace\n"

// projectRoot walks up from the test's working directory, which is its package's folder, to the project's root.
func projectRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), projectModule) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("the test's folder is not below the project's root")
		}
		dir = up
	}
}
