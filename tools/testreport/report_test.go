package main

import (
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
	r := newReport(&out, 4)
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
    71.5 s  TestA, host/volume
     2.0 s  TestB, sdk
     0.0 s  TestC, sdk
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
