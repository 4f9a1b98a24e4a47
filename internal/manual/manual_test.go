package manual

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// documents are README and docs in the order in which a newcomer reads them. docs/commands.md is left out: it is made
// from the command tree, whose examples a test of cmd/millrace parses.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	list := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	for _, d := range docs {
		if name := filepath.Base(d); name != "commands.md" {
			list = append(list, "docs/"+name)
		}
	}
	require.Greater(t, len(list), 8)
	return list
}

func read(t *testing.T, document string) []Block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, document))
	require.NoError(t, err)
	blocks, err := Parse(string(b))
	require.NoError(t, err, document)
	return blocks
}

// Every command of the documents stands where the test below finds it, and is run or says why not.
func TestEveryCommandIsInABlockThatIsRun(t *testing.T) {
	for _, document := range documents(t) {
		for _, b := range read(t, document) {
			if b.Command() && b.NotRun != "" {
				t.Logf("%s:%d is not run: %s", document, b.Line, b.NotRun)
			}
		}
	}
}

// TestDocuments types the commands of the documents, each document in a folder of its own with the built binaries on
// the PATH and nothing else of this project, in a network of its own where the machine permits one, since documents
// name ports. It takes minutes, because it types all of them, README's build of a wheel included.
func TestDocuments(t *testing.T) {
	if os.Getenv("MILLRACE_MANUAL") == "" {
		t.Skip("set MILLRACE_MANUAL=1 and MILLRACE_WHEEL_TOOLS=$(tools/package/wheel setup) to run every command of " +
			"README and docs, as make test does in its tier manual (two minutes)")
	}
	source, err := filepath.Abs(root)
	require.NoError(t, err)
	bin := t.TempDir()
	for _, program := range []struct{ module, folder string }{{".", "cmd/millrace"}, {"bench", "cmd/millrace-bench"}} {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./"+program.folder)
		build.Dir = filepath.Join(source, program.module)
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	alone := exec.CommandContext(t.Context(), "unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child",
		"true").Run() == nil
	for _, document := range documents(t) {
		t.Run(document, func(t *testing.T) { run(t, source, bin, document, alone) })
	}
}

// run types one document. README and the tour begin in a clone of the project, since they say how to build it.
func run(t *testing.T, source, bin, document string, alone bool) {
	blocks := read(t, document)
	commands := 0
	for _, b := range blocks {
		if b.Command() && b.NotRun == "" {
			commands++
		}
	}
	if commands == 0 {
		return
	}
	out, home, work := t.TempDir(), t.TempDir(), t.TempDir()
	if document == "README.md" || document == "docs/tour.md" {
		work = filepath.Join(work, "millrace")
		clone(t, source, work)
	}
	script, expectations := Script(blocks, out)
	if alone {
		script = "ip link set lo up\n" + script
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	args := []string{"bash", "-c", script}
	if alone {
		args = append([]string{"unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = work
	cmd.Env = environment(home, bin)
	ownGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	log, err := cmd.CombinedOutput()
	endGroup(cmd)
	if !assert.NoError(t, err, "%s: what was typed, and what it printed:\n%s", document, log) {
		return
	}
	assert.Contains(t, string(log), "the document is done")
	for _, e := range expectations {
		got, err := os.ReadFile(e.File)
		require.NoError(t, err)
		assert.True(t, e.Match(string(got)), "%s:%d promises of `%s`\n%s\nbut it printed\n%s", document, e.Line,
			e.Command, e.Want, got)
	}
}

// environment is that of a person who has just logged in, with the binary on the PATH and Go's caches where they were.
func environment(home, bin string) []string {
	keep := []string{
		"CGO_ENABLED", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOPATH", "GOSUMDB", "GONOSUMDB",
		"PIP_INDEX_URL", "PIP_CONFIG_FILE", "LANG",
		"MILLRACE_WHEEL_TOOLS", // since a network of its own reaches no package index
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "NO_COLOR=1", "XDG_RUNTIME_DIR=" + home}
	for _, name := range keep {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
		if _, ok := os.LookupEnv(name); ok {
			continue
		}
		if v, err := exec.Command("go", "env", name).Output(); err == nil {
			env = append(env, name+"="+strings.TrimSpace(string(v)))
		}
	}
	return env
}

// clone makes a repository of the files that git knows, as they are in the working tree.
func clone(t *testing.T, source, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o777))
	cmd := exec.CommandContext(t.Context(), "bash", "-c",
		`git -C "$0" ls-files -z | tar -C "$0" --null -T - -c | tar -C "$1" -x && cd "$1" && git init -q && git add -A &&
		git -c user.name=reader -c user.email=reader@localhost commit -qm "the working tree"`, source, to)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
