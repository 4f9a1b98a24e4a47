package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// longSeconds is from how long on the comment of a test says why the test takes so long.
const longSeconds = 20

// reasonForTime is the sentence of a comment that says why a test takes long: "It takes half a minute, because ...".
var reasonForTime = regexp.MustCompile(`\bIt takes [^.]*\bbecause\b`)

// reasons finds the comments of tests in the files of their packages.
type reasons struct {
	// folders are those of the packages that run, by their import paths.
	folders map[string]string
}

// given reports whether the comment of a test says why it takes long. A test that cannot be found gives no reason.
func (r reasons) given(pkg, test string) bool {
	files, err := filepath.Glob(filepath.Join(r.folders[pkg], "*_test.go"))
	if err != nil || r.folders[pkg] == "" {
		return false
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err == nil && bytes.Contains(source, []byte("func "+test+"(")) && reasonIn(source, test) {
			return true
		}
	}
	return false
}

// reasonIn reports whether a file's comment of the test has the sentence.
func reasonIn(source []byte, test string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && function.Name.Name == test {
			return reasonForTime.MatchString(strings.Join(strings.Fields(function.Doc.Text()), " "))
		}
	}
	return false
}
