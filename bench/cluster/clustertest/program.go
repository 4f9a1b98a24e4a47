// Package clustertest builds the program millrace for tests that run it in processes of their own.
//
// # Overview
//
// [Main] runs the tests of a package, and removes the program at their end. [Program] builds the program when a test
// first wants it, before the test gives itself another folder for temporary files.
package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster"
)

// module is the module that has the program.
const module = "github.com/millrace/millrace"

var (
	folder string // of the program
	build  = sync.OnceValue(func() error {
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return fmt.Errorf("find the module %s: %w", module, err)
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(folder, "millrace"), "./cmd/millrace")
		cmd.Dir = strings.TrimSpace(string(root))
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as packages build it, also where the race detector wants cgo
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, said)
		}
		return nil
	})
)

// Main is the function TestMain of a package whose tests run the program.
func Main(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "millrace-program-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(folder) // a folder that stays does no harm
	os.Exit(status)
}

// Program returns the program of this tree, and puts it on the PATH of the test.
func Program(t *testing.T) cluster.Program {
	t.Helper()
	require.NotEmpty(t, folder, "the package's TestMain is not Main")
	require.NoError(t, build())
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cluster.Program{Command: []string{filepath.Join(folder, "millrace")}}
}
