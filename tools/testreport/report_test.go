package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events is what go test -json says of a package that passes, one whose results are cached, one with a failed test and
// one that panics, with a line that is not an event between them.
const events = `{"Action":"start","Package":"github.com/millrace/millrace/host/volume"}
{"Action":"start","Package":"github.com/millrace/millrace/sdk"}
{"Action":"output","Package":"github.com/millrace/millrace/host/volume","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"github.com/millrace/millrace/host/volume","Test":"TestA/part","Elapsed":70}
{"Action":"pass","Package":"github.com/millrace/millrace/host/volume","Test":"TestA","Elapsed":71.5}
{"Action":"output","Package":"github.com/millrace/millrace/sdk","Test":"TestB","Output":"--- FAIL: TestB (2.00s)\n"}
go: downloading something
{"Action":"fail","Package":"github.com/millrace/millrace/sdk","Test":"TestB","Elapsed":2}
{"Action":"output","Package":"github.com/millrace/millrace/sdk","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"skip","Package":"github.com/millrace/millrace/sdk","Test":"TestC","Elapsed":0}
{"Action":"pass","Package":"github.com/millrace/millrace/host/volume","Elapsed":72.1}
{"Action":"output","Package":"github.com/millrace/millrace/sdk","Output":"FAIL\n"}
{"Action":"fail","Package":"github.com/millrace/millrace/sdk","Elapsed":2.1}
{"Action":"output","Package":"github.com/millrace/millrace/nvme","Output":"ok  \tgithub.com/millrace/millrace/nvme\t(cached)\n"}
{"Action":"pass","Package":"github.com/millrace/millrace/nvme","Elapsed":0.01}
{"Action":"skip","Package":"github.com/millrace/millrace/examples","Elapsed":0}
{"Action":"output","Package":"github.com/millrace/millrace/host","Test":"TestD","Output":"panic: at once\n"}
{"Action":"fail","Package":"github.com/millrace/millrace/host","Elapsed":0.2}`

func TestReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, 4, func(_, test string) bool { return test != "TestA" })
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.finish()
	const want = `go: downloading something
[1/4] ok   host/volume, 72.1 s
--- FAIL: TestB (2.00s)
FAIL
[2/4] FAIL sdk, 2.1 s
[3/4] ok   nvme, cached
panic: at once
[4/4] FAIL host, 0.2 s
3 tests ran in 4 packages; 1 skipped; 2 packages failed
The slowest tests:
    71.5 s  TestA, host/volume; its comment does not say: It takes ..., because ...
        70.0 s  part
     2.0 s  TestB, sdk
     0.0 s  TestC, sdk
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestLongTestsAreListed: the end of a report lists all tests that take more than 20 s, or else ten.
func TestLongTestsAreListed(t *testing.T) {
	for seconds, want := range map[string]int{"20": slowest, "20.01": slowest + 2} {
		var out, all strings.Builder
		asked := 0
		r := newReport(&out, 1, func(pkg, test string) bool {
			asked++
			return pkg == "github.com/millrace/millrace/sdk" && strings.HasPrefix(test, "Test")
		})
		for i := range slowest + 2 {
			fmt.Fprintf(&all, `{"Action":"pass","Package":"github.com/millrace/millrace/sdk","Test":"Test%d","Elapsed":%s}`+"\n",
				i, seconds)
		}
		if err := r.read(strings.NewReader(all.String())); err != nil {
			t.Fatal(err)
		}
		r.finish()
		if got := strings.Count(out.String(), ", sdk\n"); got != want {
			t.Errorf("tests of %s s: %d are listed, want %d:\n%s", seconds, got, want, out.String())
		}
		if long := want - slowest; (asked > 0) != (long > 0) {
			t.Errorf("tests of %s s: %d comments were looked at", seconds, asked)
		}
	}
}

func TestReasonIn(t *testing.T) {
	for comment, want := range map[string]bool{
		"// TestA tries all. It takes half a minute, because each of ten members waits for a lease.": true,
		"// TestA tries all. It takes 30 s on\n// two cores because it compiles.":                    true,
		"// TestA tries all. It takes half a minute. Because of that it runs last.":                  false,
		"// TestA tries all, because all may fail.":                                                  false,
		"": false,
	} {
		source := "package a\n\n// TestB differs. It takes a minute, because it waits.\nfunc TestB(t *testing.T) {}\n\n" +
			comment + "\nfunc TestA(t *testing.T) {}\n"
		if got := reasonIn([]byte(source), "TestA"); got != want {
			t.Errorf("%q: got %v", comment, got)
		}
	}
	if reasonIn([]byte("package"), "TestA") {
		t.Error("a file that is not Go gives a reason")
	}
}

func TestReasonsAreFoundInTheFilesOfAPackage(t *testing.T) {
	folder := t.TempDir()
	const source = "package a\n\n// TestA waits. It takes a minute, because it waits.\nfunc TestA(t *testing.T) {}\n"
	for name, text := range map[string]string{"a_test.go": "package a\n", "b_test.go": source} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := reasons{map[string]string{"a": folder}}
	for _, c := range []struct {
		pkg, test string
		want      bool
	}{{"a", "TestA", true}, {"a", "TestB", false}, {"b", "TestA", false}} {
		if got := r.given(c.pkg, c.test); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
