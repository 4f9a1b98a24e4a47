package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTree writes files, by their names relative to a new folder, and returns the folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestListsFollowTheFolders(t *testing.T) {
	root := writeTree(t, map[string]string{
		"doc.go":                "package operator\n",
		"zeroextend/op.go":      "package zeroextend\n\nvar Definition = 1\n",
		"clamp/op.go":           "package clamp\n\nvar Definition = 1\n",
		"clamp/op_test.go":      "package clamp_test\n",
		"clamp/kernel/k.go":     "package kernel\n\nconst Unit = 2\n\nfunc Compile() {}\n",
		"cartesian/kernel/k.go": "package kernel\n\nconst Unit = 26\n\nfunc CompileCombiner() {}\n",
		"clamp/testdata/x.go":   "package testdata\n",
		"kernels/kernels.go":    "package kernels\n",
	})
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "go generate") {
		t.Errorf("the check of missing lists returns %v, want an error that says what writes them", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("the check of written lists: %v", err)
	}
	for file, want := range map[string]string{
		"operators.go": "var definitions = []Definition{\n\tclamp.Definition,\n\tzeroextend.Definition,\n}\n\n" +
			"// documented lists Entry of every operator that declares it, by the names of the folders.\n" +
			"var documented = []Entry{}\n\n" +
			"// answers lists Answers of every operator that declares it, by the names of the folders.\n" +
			"var answers = []Answers{}\n",
		"kernels/kernels_list.go": "var steps = map[program.Unit]StepCompiler{\n\tclamp.Unit: clamp.Compile,\n}\n\n" +
			"// combiners lists CompileCombiner of every operator that declares it, by the names of the folders.\n" +
			"var combiners = map[program.Unit]CombinerCompiler{\n\tcartesian.Unit: cartesian.CompileCombiner,\n}\n",
	} {
		got, err := os.ReadFile(filepath.Join(root, file))
		if err != nil || !strings.HasSuffix(string(got), want) {
			t.Errorf("%s: %v\n%s\nwant it to end with\n%s", file, err, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "references/references_list.go")); !os.IsNotExist(err) {
		t.Errorf("the list of references without a reference: %v, want none", err)
	}
	for _, folder := range []string{"clamp", "cartesian", "zeroextend"} {
		if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "operators.go")); !os.IsNotExist(err) {
		t.Errorf("the list of operators without an operator: %v, want none", err)
	}
}

func TestPackagesThatCannotBeListed(t *testing.T) {
	for name, of := range map[string]struct{ file, text, want string }{
		"nothing to list":  {"clamp/kernel/k.go", "package kernel\n\nconst Unit = 2\n", "clamp/kernel declares none"},
		"without a number": {"clamp/kernel/k.go", "package kernel\n\nfunc Compile() {}\n", "Unit and Compile"},
		"only a method": {"clamp/reference/r.go",
			"package reference\n\nconst Unit = 2\n\nfunc (t) Evaluate() {}\n", "declares none"},
		"another package":     {"clamp/op.go", "package clamps\n\nvar Definition = 1\n", "name the package as its folder"},
		"text that is not Go": {"clamp/op.go", "package\n", "op.go"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(writeTree(t, map[string]string{of.file: of.text}), false)
			if err == nil || !strings.Contains(err.Error(), of.want) {
				t.Errorf("error %v, want one that holds %q", err, of.want)
			}
		})
	}
}
