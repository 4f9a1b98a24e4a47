package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/shared"
)

const root = "../.."

// goFiles calls fn for every Go file of the product's module and of bench with its package folder relative to the root.
func goFiles(t *testing.T, fn func(pkg, file string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if rel != "." &&
				(strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if rel != "." && rel != "bench" {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return filepath.SkipDir
				}
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			fn(filepath.ToSlash(filepath.Dir(rel)), path)
		}
		return nil
	}))
}

func TestArrowsRunDown(t *testing.T) {
	files := 0
	goFiles(t, func(pkg, file string) {
		files++
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			if to, ok := strings.CutPrefix(path, Module+"/"); ok {
				if why := Check(pkg, to); why != "" && to != pkg {
					t.Errorf("%s imports %s: %s", file, to, why)
				}
				for _, why := range []string{CheckUnit(pkg, to), CheckOperator(pkg, to)} {
					if why != "" && !strings.HasSuffix(file, "_test.go") {
						t.Errorf("%s imports %s: %s", file, to, why)
					}
				}
			} else if why := CheckExternal(pkg, path); why != "" {
				t.Errorf("%s imports %s: %s", file, path, why)
			}
		}
	})
	require.Greater(t, files, 10, "the walk found no tree")
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"nvme", "fpga/csd"}, {"fpga/unit/text", "sdk"}, {"host", "trainmgr"}, {"trainmgr", "host"},
		{"trainmgr", "sdk"}, {"trainmgr", "trainmgr/local"},
		{"trainmgr/allocation", "sdk/dataset"}, {"trainmgr/offload", "trainmgr/allocation"},
		{"trainmgr/autoscale", "trainmgr/offload"}, {"trainmgr", "control"},
		{"sdk/dataset", "sdk"}, {"sdk/slicer", "sdk"}, {"sdk/tensor/arrowipc", "sdk"}, {"host", "fpga/engine"},
		{"sdk", "fpga/engine"}, {"sdk/pipeline", "fpga/operator/clamp/kernel"}, {"sdk/pipeline", "fpga/block"},
		{"examples/launcher", "fpga/operator/kernels"}, {"host/api", "host"},
		{"host/api/v1", "host/node"}, {"internal/shared", "nvme"},
		{"examples/launcher", "internal/shared"}, {"examples/launcher", "capacity/sizing"},
		{"cmd/millrace", "bench/rm"}, {"host/node", "bench/cluster"},
		{"examples/launcher", "cmd/millrace"}, {"examples/launcher", "fpga/engine"}, {"sdk", "examples/launcher"},
	} {
		assert.NotEmpty(t, Check(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	for _, c := range []struct{ from, to string }{
		{"fpga/csd", "nvme/controller"}, {"trainmgr", "host/api"}, {"trainmgr", "trainmgr/allocation"},
		{"trainmgr", "trainmgr/offload"}, {"trainmgr", "trainmgr/autoscale"},
		{"trainmgr/autoscale", "trainmgr/allocation"},
		{"trainmgr/local", "host"}, {"sdk/cpu", "fpga/engine"}, {"cmd/millrace", "trainmgr"},
		{"nvme", "internal/shared"}, {"examples/launcher", "trainmgr/local"},
		{"examples/python", "examples/storagenodetest"}, {"host/api/v1/apiv1connect", "host/api/v1"},
	} {
		assert.Empty(t, Check(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	const parquet = "fpga/unit/parquet/"
	for _, c := range []struct{ from, to string }{
		{parquet + "decoder", parquet + "reference"}, {parquet + "format", parquet + "reference"},
		{parquet + "reference", parquet + "decoder"}, {parquet + "reference", "fpga/unit/encoding"},
	} {
		assert.NotEmpty(t, CheckUnit(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	for _, c := range []struct{ from, to string }{
		{parquet + "decoder", parquet + "format"}, {parquet + "reference", parquet + "format"},
		{parquet + "decoder", "fpga/unit/encoding"}, {"fpga/engine/reference", parquet + "reference"},
	} {
		assert.Empty(t, CheckUnit(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	const clamp = "fpga/operator/clamp"
	for _, c := range []struct{ from, to string }{
		{clamp + "/reference", clamp + "/kernel"}, {clamp + "/reference", "fpga/engine"},
		{"fpga/rowvalue", "fpga/engine/reference"}, {clamp + "/kernel", clamp + "/reference"},
		{"sdk/cpu", clamp + "/reference"}, {"fpga/engine", "fpga/operator/references"},
		{clamp + "/reference", "fpga/block"}, {clamp + "/kernel", "fpga/operator/log/kernel"},
		{clamp + "/kernel", "fpga/unit/parquet/reference"}, {clamp + "/kernel", "fpga/engine"},
		{clamp + "/kernel", "fpga/rowvalue"},
	} {
		assert.NotEmpty(t, CheckOperator(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	for _, c := range []struct{ from, to string }{
		{clamp + "/reference", clamp}, {clamp + "/reference", "fpga/unit/clamp"},
		{"fpga/operator/references", clamp + "/reference"}, {"fpga/engine/reference", "fpga/operator/references"},
		{"fpga/operator/kernels", clamp + "/kernel"},
		{clamp + "/kernel", "fpga/block"}, {clamp + "/kernel", "fpga/unit/clamp"}, {clamp + "/kernel", clamp},
	} {
		assert.Empty(t, CheckOperator(c.from, c.to), "%s -> %s", c.from, c.to)
	}
	assert.NotEmpty(t, CheckExternal("sdk", "go.etcd.io/etcd/client/v3"))
	assert.NotEmpty(t, CheckExternal("fpga/unit/logn", "C"))
	assert.NotEmpty(t, CheckExternal("host", "github.com/minio/minio-go/v7"))
	assert.Empty(t, CheckExternal("host/source/s3", "github.com/minio/minio-go/v7/pkg/credentials"))
}

// TestTheProductLinksNoMeasuringCode checks that what a user installs or imports has no package of bench in it.
func TestTheProductLinksNoMeasuringCode(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/millrace", "./host/node", "./trainmgr/...", "./examples/...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), Module+"/host/node\n")
	assert.NotContains(t, string(out), Module+"/bench/")
}

// topLevel is every folder and file at the top level beside the floors, each with the reason why it is there. A folder
// ends in a slash.
var topLevel = map[string]string{
	".ci/":            "the scripts of the tiers of tests, which the Makefile and CI run",
	"docs/":           "the documents",
	"examples/":       "programs that show a user what to write, run as tests",
	"internal/":       "packages below every floor, which nobody outside the module imports",
	"tools/":          "generators, linters and packaging, in modules of their own",
	".gitignore":      "what a checkout makes and nobody commits",
	".golangci.yml":   "the rules of golangci-lint, which looks for them here",
	"CHANGELOG.md":    "what changed between releases, where users look for it",
	"CONTRIBUTING.md": "how to change the code, where contributors look for it",
	"LICENSE":         "the licence, where tools look for it",
	"Makefile":        "the commands of a developer",
	"README.md":       "what this is",
	"SECURITY.md":     "how to report a vulnerability, where reporters look for it",
	"go.mod":          "the module",
	"go.sum":          "the checksums of what the module needs",
}

// checkoutOnly is what a checkout has and the repository has not: .git, and what .gitignore names.
var checkoutOnly = map[string]string{
	".git":     "a file in a worktree",
	".git/":    "the history",
	"bin/":     "what make builds",
	"dist/":    "packages",
	".cache/":  "what tools keep between runs",
	"millrace": "the binary, as go build names it",
}

// TestTopLevel knows every folder and every file at the top level: the floors, and the few things beside them. A file
// that a command left behind by mistake fails the test.
func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		found[name] = true
		known := topLevel[name] != "" || checkoutOnly[name] != "" ||
			slices.Contains(floors, strings.TrimSuffix(name, "/"))
		assert.True(t, known, "%s at the top level is none of the house's: move it, remove it, or name it here", name)
	}
	for name := range topLevel {
		assert.True(t, found[name], "%s is gone from the top level", name)
	}
	for _, floor := range floors {
		assert.True(t, found[floor+"/"], "the floor %s is gone from the top level", floor)
	}
}

// largestFile bounds a file of the repository, in bytes: the largest is generated protobuf of less than 200 KB.
const largestFile = 512 << 10

// TestNoLargeFiles: a drive's flash or a data set that a test left behind is not committed.
func TestNoLargeFiles(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		shared.Missing(t, "git does not list the files of the repository: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Greater(t, len(names), 1000)
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			continue // removed and not committed yet
		}
		assert.Less(t, info.Size(), int64(largestFile), "%s is too large for the repository", name)
	}
}

// TestNoVagueRooms refuses packages named for nothing.
func TestNoVagueRooms(t *testing.T) {
	goFiles(t, func(pkg, _ string) {
		switch filepath.Base(pkg) {
		case "util", "utils", "common", "helpers", "helper", "misc", "base":
			t.Errorf("package %s is named for nothing that it holds", pkg)
		}
	})
}

// TestLinks holds, in testdata/links.txt, every module that a launcher's package or the binary links. A new one is a
// decision: write it into docs/dependencies.md and run the test with MILLRACE_UPDATE=1.
func TestLinks(t *testing.T) {
	var got strings.Builder
	for _, pkg := range []string{
		"nvme/controller", "fpga/csd", "sdk", "sdk/tensor/arrowipc", "trainmgr", "trainmgr/local", "trainmgr/remote",
		"cmd/millrace",
	} {
		if _, err := os.Stat(filepath.Join(root, pkg)); err != nil {
			t.Fatalf("package %s is gone", pkg)
		}
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./"+pkg)
		cmd.Dir = root
		out, err := cmd.Output()
		require.NoError(t, err, pkg)
		set := map[string]bool{}
		for _, m := range strings.Fields(string(out)) {
			if m != Module {
				set[m] = true
			}
		}
		mods := make([]string, 0, len(set))
		for m := range set {
			mods = append(mods, m)
		}
		sort.Strings(mods)
		got.WriteString(pkg + "\n")
		for _, m := range mods {
			got.WriteString("\t" + m + "\n")
		}
	}
	goldenfile.Text(t, "testdata/links.txt", got.String())
	deps, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	require.NoError(t, err)
	for _, m := range strings.Fields(got.String()) {
		if strings.Contains(m, ".") && strings.Contains(m, "/") {
			assert.True(t, strings.Contains(string(deps), m), "docs/dependencies.md says nothing of %s", m)
		}
	}
}
