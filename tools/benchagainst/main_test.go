package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"HEAD~1"}, {"-rounds", "4", "HEAD"}, {"-rounds", "100", "HEAD"}, {"-bound", "0", "HEAD"},
		{"-bound", "99.9", "HEAD"}, {"-time", "1ns", "HEAD"},
	} {
		if _, _, err := parse(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	for want, args := range map[string][]string{
		"got 0 revisions":       {},
		"got 2 revisions":       {"HEAD", "HEAD~1"},
		"-rounds is 3":          {"-rounds", "3", "HEAD"},
		"-rounds is 101":        {"-rounds", "101", "HEAD"},
		"-bound is -0.1":        {"-bound", "-0.1", "HEAD"},
		"-bound is 100":         {"-bound", "100", "HEAD"},
		"-bound is NaN":         {"-bound", "NaN", "HEAD"},
		"-time is 0s":           {"-time", "0s", "HEAD"},
		"flag provided but not": {"-fast", "HEAD"},
	} {
		if _, _, err := parse(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", args, err, want)
		}
	}
}

func TestChosen(t *testing.T) {
	subject, measurements, err := chosen(options{models: "rm1,rm5", duration: time.Second})
	if err != nil || subject.pkg != measuringCommand || subject.otherwise != "./cmd/millrace" ||
		len(measurements) != 2 || measurements[1].name != "rm5" {
		t.Errorf("got %v and %v (%v), want the command and two workloads", subject, measurements, err)
	}
	for benchmark, pattern := range map[string]string{"./sdk/tensor": ".", " ./sdk/tensor  Frame|Copy ": "Frame|Copy"} {
		subject, measurements, err := chosen(options{benchmark: benchmark, duration: time.Second})
		if err != nil || subject.pkg != "./sdk/tensor" || len(measurements) != 1 ||
			!strings.Contains(strings.Join(measurements[0].arguments, " "), "-test.bench "+pattern+" ") {
			t.Errorf("%q: got %v and %v (%v)", benchmark, subject, measurements, err)
		}
	}
	_, _, err = chosen(options{benchmark: "Kernel"})
	if err == nil || !strings.Contains(err.Error(), "begin it with ./") {
		t.Errorf("a pattern without a package is refused with %v", err)
	}
}

// repository makes a git repository with a command that reports a rate, and a benchmark. Each rate is a commit.
func repository(t *testing.T, rates ...string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	git("init", "--quiet")
	write(".gitignore", "/bin/\n")
	write("go.mod", "module example.com/a\n\ngo 1.26\n")
	// The benchmark reports a constant, since no test depends on how fast the machine is.
	write("sum/sum_test.go", `package sum

import "testing"

func BenchmarkAdd(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(100, "ns/op")
}
`)
	for _, rate := range rates {
		// The model's name is an argument, and the rate varies a little from process to process.
		write("cmd/millrace/main.go", `package main

import (
	"fmt"
	"os"
)

func main() {
	rate := float64(`+rate+`) * (1 + float64(os.Getpid()%8)/1e4)
	fmt.Printf("[{\"model\": %q, \"rows_per_second\": %v,", os.Args[4], rate)
	fmt.Printf("\"input_bytes_per_second\": %v}]\n", 264*rate)
}
`)
		git("add", ".")
		git("commit", "--quiet", "--allow-empty", "-m", "rate "+rate)
	}
	return root
}

// TestRun compares commits of a repository: a tree that is as fast, one that is slower than the bound, and one that is
// slower within the bound.
func TestRun(t *testing.T) {
	root := repository(t, "1000", "1000", "970", "1000")
	for _, c := range []struct {
		name     string
		args     []string
		slower   bool
		contains []string
	}{
		{"a revision with the same program", []string{"HEAD~2"}, false, []string{"the same bytes"}},
		{"a revision with the same program, measured too", []string{"-identical-too", "HEAD~2"}, false,
			[]string{"rm5", "8+8"}},
		{"a slower revision", []string{"HEAD~1"}, false,
			[]string{"faster", "older: ", "rate 970", "machine: ", "load before"}},
		{"a benchmark", []string{"-identical-too", "-rounds", "4", "-time", "1ms", "-benchmark", "./sum Add", "HEAD~1"},
			false, []string{"Add", "sec/op", "need >= 6 samples"}},
	} {
		checkRun(t, root, c.name, c.args, c.slower, c.contains)
	}
	if out, err := exec.Command("git", "-C", root, "checkout", "--quiet", "HEAD~1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkRun(t, root, "a tree that is 3 % slower", []string{"HEAD~1"}, true, []string{"SLOWER"})
	checkRun(t, root, "within a bound of 4 %", []string{"-bound", "4", "HEAD~1"}, false, []string{"within the bound"})

	for want, args := range map[string][]string{
		"nothing is not a revision": {"nothing"},
		"-q is not a revision":      {"--", "-q"},
		"give 5 or more":            {"-rounds", "4", "-identical-too", "HEAD"},
		"matches none":              {"-benchmark", "./sum None", "-identical-too", "HEAD"},
	} {
		if _, err := run(t.Context(), append([]string{"-root", root}, args...), &strings.Builder{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %s", args, err, want)
		}
	}
	out, err := exec.Command("git", "-C", root, "worktree", "list").Output()
	if err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("worktrees stay: %s (%v)", out, err)
	}
}

func checkRun(t *testing.T, root, name string, args []string, wantSlower bool, contains []string) {
	t.Helper()
	var out strings.Builder
	slower, err := run(t.Context(), append([]string{"-root", root}, args...), &out)
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out.String())
		return
	}
	if slower != wantSlower {
		t.Errorf("%s: slower is %v\n%s", name, slower, out.String())
	}
	for _, text := range contains {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%s: the report does not say %q:\n%s", name, text, out.String())
		}
	}
}

// TestModuleOfAPackage checks that a package is built in the nearest module above it, as bench is.
func TestModuleOfAPackage(t *testing.T) {
	s := &side{root: t.TempDir()}
	for _, folder := range []string{"bench/cmd/program", "sum"} {
		if err := os.MkdirAll(filepath.Join(s.root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{".", "bench"} {
		if err := os.WriteFile(filepath.Join(s.root, folder, "go.mod"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for pkg, want := range map[string]string{"./bench/cmd/program": "bench", "./bench": "bench", "./sum": ".", ".": "."} {
		if got := s.moduleOf(pkg); got != filepath.Join(s.root, want) {
			t.Errorf("%s is of the module in %s, want %s", pkg, got, want)
		}
	}
}
