// Package goldenfile compares what a test made with a file that is kept in testdata: the bytes of a wire form, a
// document, a table.
//
// # Overview
//
// [Bytes] keeps bytes as lines of hexadecimal digits, 32 bytes a line, so that a difference can be read; [Text] keeps a
// text as it is. [Scripts] runs scripts that hold their results, and [Blocks] one of commands. [Read] returns the bytes
// that [Bytes] kept, for tests that read what an earlier build wrote.
//
// With MILLRACE_UPDATE=1 in the environment both functions write the file instead. The golden files of wire forms are
// listed in docs/compatibility.md: when bytes change there, a reader somewhere no longer understands the stored or
// sent form. Give the form a new version and the new version a new file; do not update the old file.
//
// # Errors
//
// A difference, and a file that cannot be read, fail the test and name the file.
package goldenfile

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lineBytes is how many bytes one line of a hexadecimal file holds.
const lineBytes = 32

// Updating reports whether golden files are to be written instead of compared.
func Updating() bool { return os.Getenv("MILLRACE_UPDATE") == "1" }

// Bytes compares b with the hexadecimal file at path.
func Bytes(t testing.TB, path string, b []byte) {
	t.Helper()
	Text(t, path, Hex(b))
}

// Text compares s with the file at path.
func Text(t testing.TB, path, s string) {
	t.Helper()
	if Updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s != string(want) {
		t.Fatalf("%s differs in line %d. It has\n%s\nthe test made\n%s", path, firstDifference(string(want), s), want,
			s)
	}
}

// Read returns the bytes of the hexadecimal file at path.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// Hex writes bytes as lines of hexadecimal digits, as [Bytes] keeps them.
func Hex(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(len(b), lineBytes)
		s.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return s.String()
}

// firstDifference returns the number of the first line that differs, from 1.
func firstDifference(a, b string) int {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			return i + 1
		}
	}
	return min(len(left), len(right)) + 1
}
