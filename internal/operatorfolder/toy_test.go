package operatorfolder

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// generated are the files that go generate writes for a new operator.
var generated = []string{
	"docs/operators.md",
	"docs/pipeline.schema.json",
	"fpga/image/stock/testdata/stock.id",
	"fpga/operator/kernels/kernels_list.go",
	"fpga/operator/operators.go",
	"fpga/operator/references/references_list.go",
	"fpga/program/operatorunits.go",
	"sdk/pipeline/operators.go",
	"sdk/python/src/millrace/operators.py",
}

// document is a pipeline in YAML with the operator. script builds the same in Python.
const document = `name: toy
batch: 1000
sparse:
  - columns: [id, tags]
    ops: [toy: {times: 3, plus: 7}]
`

// script builds the pipeline of document, and prints the values and the lengths of the mini-batch.
const script = `import json, sys
import millrace
from millrace import Pipeline
from millrace.operators import toy

pipeline = Pipeline("toy", batch=1000).sparse(["id", "tags"], ops=[toy(3, plus=7)])
with millrace.open(sys.argv[1], pipeline, tensors="views") as batches:
    for batch in batches:
        print(json.dumps({"values": list(batch.values), "lengths": sum(batch.lengths.tolist(), [])}))
`

// row is a row of the generated file.
type row struct {
	ID   *int64  `parquet:"id,optional"`
	Tags []int64 `parquet:"tags,list"`
}

// answer is what the pipeline makes of the file.
type answer struct {
	Values  []int64  `json:"values"`
	Lengths []uint32 `json:"lengths"`
}

// TestAnOperatorIsAFolder adds the operator of testdata to a copy of the tree, generates what follows from the folder,
// and runs the operator over a file on every engine. It takes long, because what imports the operators is compiled
// again.
func TestAnOperatorIsAFolder(t *testing.T) {
	tree := copyTree(t, filepath.Join("..", ".."))
	before := contents(t, tree)
	toy := filepath.Join(tree, "fpga", "operator", "toy")
	require.NoDirExists(t, toy)
	require.NoError(t, os.CopyFS(toy, os.DirFS(filepath.Join("testdata", "toy"))))
	run(t, tree, nil, "go", "generate", "./fpga/operator", "./sdk/pipeline")
	binary := filepath.Join(tree, "bin", "millrace")
	run(t, tree, nil, "go", "build", "-o", binary, "./cmd/millrace")

	t.Run("nothing else changes", func(t *testing.T) {
		after := contents(t, tree)
		var changed []string
		for name, text := range after {
			switch old, ok := before[name]; {
			case strings.HasPrefix(name, "fpga/operator/toy/"), strings.HasPrefix(name, "bin/"):
			case !ok:
				t.Errorf("%s is a new file", name)
			case old != text:
				changed = append(changed, name)
			}
		}
		slices.Sort(changed)
		assert.Equal(t, generated, changed)
		for name := range before {
			assert.Contains(t, after, name)
		}
	})
	t.Run("its known answers", func(t *testing.T) {
		run(t, tree, nil, "go", "test", "-count=1", "-run", "KnownAnswers|EveryOperator|Stock", "./fpga/operator/...",
			"./fpga/image/stock")
	})

	folder := t.TempDir()
	file, want := writeFile(t, folder)
	pipeline := filepath.Join(folder, "toy.yaml")
	require.NoError(t, os.WriteFile(pipeline, []byte(document), 0o644))
	for _, engine := range []string{"reference", "cpu", "drive"} {
		t.Run("engine "+engine, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "tensors")
			run(t, tree, nil, binary, "preprocess", "--pipeline", pipeline, "--in", file, "--engine", engine, "--out", out)
			assert.Equal(t, want, answer{readArray[int64](t, out, "values"), readArray[uint32](t, out, "lengths")})
		})
	}
	t.Run("Python", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		require.NoError(t, err, "install python3")
		env := []string{"PYTHONPATH=" + filepath.Join(tree, "sdk", "python", "src"), "PYTHONDONTWRITEBYTECODE=1",
			"MILLRACE_BIN=" + binary}
		var got answer
		require.NoError(t, json.Unmarshal(run(t, tree, env, python, "-c", script, file), &got))
		assert.Equal(t, want, got)
	})
	t.Run("a parameter out of range", func(t *testing.T) {
		require.NoError(t, os.WriteFile(pipeline, []byte(strings.Replace(document, "times: 3", "times: 0", 1)), 0o644))
		out, err := command(t, tree, nil, binary, "pipeline", "check", pipeline).CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(out), "toy.times: wrong value: 0, want at least 1")
	})
}

// copyTree copies the files of a checkout, without those that git ignores, and returns the new folder.
func copyTree(t *testing.T, root string) string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	require.NoError(t, err, "list the files of the checkout")
	tree := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(tree, name)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) {
			continue // deleted and not committed
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(target, to))
			continue
		}
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, info.Mode().Perm()))
	}
	return tree
}

// contents returns the texts of the files of a tree by their names.
func contents(t *testing.T, tree string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	require.NoError(t, filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		texts[filepath.ToSlash(name)] = string(b)
		return err
	}))
	return texts
}

// command returns a command in the tree. Go takes modules from the module cache alone. Paths of the tree are not part
// of what it compiles, so that the build cache serves the next run, whose tree lies elsewhere.
func command(t *testing.T, tree string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath -vet=off", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0",
		"MILLRACE_UPDATE=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// run runs a command in the tree and returns what it prints.
func run(t *testing.T, tree string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := command(t, tree, env, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s:\n%s%s", name, strings.Join(args, " "), out, stderr.String())
	return out
}

// writeFile writes a Parquet file and returns its name, and what the pipeline makes of it.
func writeFile(t *testing.T, folder string) (name string, want answer) {
	t.Helper()
	compute := func(x int64) int64 { return 3*x + 7 }
	rows := make([]row, 700)
	for i := range rows {
		id := int64(i-300) << (i % 55)
		if i%5 == 0 {
			want.Lengths = append(want.Lengths, 0)
			continue
		}
		rows[i].ID = &id
		want.Lengths, want.Values = append(want.Lengths, 1), append(want.Values, compute(id))
	}
	for i := range rows {
		for j := range i % 4 {
			tag := int64(i * j)
			rows[i].Tags = append(rows[i].Tags, tag)
			want.Values = append(want.Values, compute(tag))
		}
		want.Lengths = append(want.Lengths, uint32(i%4))
	}
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, rows))
	name = filepath.Join(folder, "toy.parquet")
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o644))
	return name, want
}

// readArray returns the elements of an array of a folder of npy files.
func readArray[T int64 | uint32](t *testing.T, folder, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, name+".npy"))
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")))
	data := b[10+int(binary.LittleEndian.Uint16(b[8:])):]
	values := make([]T, len(data)/binary.Size(T(0)))
	require.NoError(t, binary.Read(bytes.NewReader(data), binary.LittleEndian, values))
	return values
}
