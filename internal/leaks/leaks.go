// Package leaks compares what a test leaves behind with what was there before the test: goroutines, and descriptors of
// files and sockets.
//
// # Overview
//
// [Check] counts, and counts again when the test has ended and everything that it registered with Cleanup after the
// call has run. Tests call it first. What ends in the background has time: the second count waits for the first one's
// numbers.
//
// [Run] runs all tests of a package, and fails if they leave goroutines behind.
//
// # Concurrency
//
// The counts are those of the whole process. A test that calls Check must not run in parallel with others.
//
// # Errors
//
// A test that leaves something behind fails with the stacks of all goroutines and the names of all descriptors.
package leaks

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines and descriptors may take to end after a test.
const patience = time.Minute

// Check fails the test if, after the test's end, there are more goroutines or descriptors than now.
func Check(t testing.TB) {
	t.Helper()
	checkWithin(t, patience)
}

// checkWithin is Check with another time to wait.
func checkWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		for runtime.NumGoroutine() > goroutines || len(openDescriptors()) > len(descriptors) {
			if time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
				continue
			}
			if n := runtime.NumGoroutine(); n > goroutines {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines are left, and there were %d before the test:\n%s", n, goroutines,
					stacks[:runtime.Stack(stacks, true)])
			}
			if now := openDescriptors(); len(now) > len(descriptors) {
				t.Errorf("%d descriptors are left, and there were %d before the test:\n%s\nbefore:\n%s", len(now),
					len(descriptors), strings.Join(now, "\n"), strings.Join(descriptors, "\n"))
			}
			return
		}
	})
}

// Run runs the tests of a package and exits: it is the body of a TestMain. Goroutines that are left when the tests have
// passed fail them.
func Run(m *testing.M) {
	const mine = 2 // this goroutine, and the one that waits for signals
	code := m.Run()
	if code == 0 {
		http.DefaultClient.CloseIdleConnections()
		deadline := time.Now().Add(patience)
		for runtime.NumGoroutine() > mine && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > mine {
			stacks := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "%d goroutines are left:\n%s\n", n, stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
	}
	os.Exit(code)
}

// openDescriptors names the targets of this process' descriptors. It leaves out the descriptors that the Go runtime
// opens once for all connections, and names none where the system does not list them.
func openDescriptors() (names []string) {
	const list = "/proc/self/fd"
	entries, err := os.ReadDir(list)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, err := os.Readlink(filepath.Join(list, e.Name()))
		if err != nil || name == "anon_inode:[eventpoll]" || name == "anon_inode:[eventfd]" {
			continue // a descriptor that has been closed meanwhile, such as that of the list
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
