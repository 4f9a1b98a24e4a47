package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/cmd/cli/clitest"
)

// printed is the output of every command, once everyCommand ran.
var printed map[string]string

// everyCommand runs every command that prints a result, with --output json, and returns what each printed.
func everyCommand(t *testing.T) map[string]string {
	t.Helper()
	if printed != nil {
		return printed
	}
	data := generate(t, "--rows", "600", "--partitions", "2")
	dir := t.TempDir()
	drive := "file:" + dir + "/d0.flash"
	tsv := file(t, "rows.tsv", strings.Repeat("1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n", 5))
	out := map[string]string{}
	do := func(args ...string) {
		name := args[0]
		if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
			name += " " + args[1]
		}
		if name == "control members" {
			name += " " + args[2]
		}
		out[name] = must(t, append(args, "--output", "json", "--progress", "none")...)
	}
	do("dataset", "generate", "--rows", "100", "--out", dir+"/generated")
	do("dataset", "import", "--input-format", "criteo-tsv", "--out", dir+"/imported", tsv)
	do("dataset", "inspect", data)
	do("dataset", "summarize", data)
	do("dataset", "drift", data, data)
	out["dataset inspect --coverage"] = must(t, "dataset", "inspect", data, "--coverage", "--count", "--output", "json")
	do("pipeline", "init", data)
	do("pipeline", "check", "rm1", "--in", data)
	do("pipeline", "show", "rm1")
	vocabularies := t.TempDir()
	pass := []string{"--pipeline", vocabularyPipeline(t, vocabularies, ""), "--in", data, "--out"}
	do(append([]string{"vocabulary", "build"}, append(pass, vocabularies+"/a")...)...)
	do("vocabulary", "extend", vocabularies+"/a", "--pipeline", pass[1], "--in", dir+"/generated", "--out",
		vocabularies+"/b")
	do("vocabulary", "info", vocabularies+"/a")
	do("vocabulary", "diff", vocabularies+"/a", vocabularies+"/a")
	do("drive", "create", drive+"?size=8MiB&slm=64MiB")
	do("drive", "put", drive, data+"/part-00000.parquet", data+"/part-00001.parquet")
	do("drive", "ls", drive)
	do("drive", "info", drive)
	do("drive", "smart", drive)
	do("drive", "validate", drive)
	do("drive", "trim", drive)
	do("drive", "list")
	images(t, dir, do, drive)
	do("preprocess", "--pipeline", "rm1", "--drive", drive, "--out", dir+"/out", "--batch", "256")
	do("train", "--pipeline", "rm1", "--drive", drive, "--batch", "256", "--trainer-rows-per-second", "1e6",
		"--measure", "10ms")
	do("demo", "--rows", "3000", "--slm", "64MiB", "--measure", "10ms", "--trainer-rows-per-second", "1e6")
	do("plan", "--t", "1e6", "--model", "rm5", "--size", "1PB")
	do("image", "explore", "--elements", "2")
	do("image", "package", "--unit", "clamp", "--out", dir+"/kernel")
	module, vectors := writeCountVectors(t, 5)
	do("operator", "test", module, vectors)
	do("pki", "init", "--dir", dir+"/pki")
	do("pki", "issue", "--dir", dir+"/pki", "--role", "node", "--name", "node0", "--host", "localhost")
	service(t, dir, do)
	do("control", "restore", dir+"/control.snapshot", "--data", dir+"/restored", "--log-level", "error")
	home(t)
	do(append([]string{"up"}, fresh...)...)
	do("down")
	do("context", "add", "prod", "--control", "unix:/run/elsewhere.sock")
	do("context", "list")
	do("context", "show", "prod")
	do("context", "use", "prod")
	do("context", "remove", "prod")
	placed(t, do, data)
	do("config", "print-defaults", "node")
	do("config", "check", file(t, "node.yaml", "name: n1\ndrives: [{name: d0, uri: 'mem:d0'}]\n"))
	do("version")
	printed = out
	return out
}

// TestJSONKeysAreSnakeCaseWithUnits looks at the keys that every command prints. It takes most of a minute on a busy
// machine, because it is the first of three tests that need the output of every command, and runs all of them, among
// them a job of a whole service.
func TestJSONKeysAreSnakeCaseWithUnits(t *testing.T) {
	printed := everyCommand(t)
	for _, c := range commands() {
		name := strings.TrimPrefix(c.CommandPath(), "millrace ")
		switch {
		case c.Hidden, c.HasSubCommands(), c.DisableFlagParsing, name == "help", name == "completion": // print no result
		case name == "drive reset", name == "drive serve", name == "node run", name == "worker run",
			name == "control run", name == "private":
			// of a drive that the kernel has; until they are interrupted; until the trainer ends
		default:
			assert.NotEmpty(t, printed[name], "the JSON of %s is not looked at", name)
		}
	}
	clitest.CheckKeys(t, printed)
}

// TestReportsHaveWhatTheyPromise: the fields of a job's report that others read.
func TestReportsHaveWhatTheyPromise(t *testing.T) {
	printed := everyCommand(t)
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(printed["demo"]), &report))
	for _, key := range []string{"rows", "rows_per_second", "t_rows_per_second", "p_rows_per_second", "drives",
		"move_seconds", "decode_seconds",
		"transform_seconds", "fetch_seconds", "stall_seconds", "queue_depth_mean", "bottleneck", "per_drive"} {
		assert.Contains(t, report, key)
	}
	assert.EqualValues(t, 3000, report["rows"])
	drives := report["per_drive"].([]any)
	require.Len(t, drives, 2)
	for _, d := range drives {
		d := d.(map[string]any)
		own := d["counters"].(map[string]any)
		assert.Equal(t, "functional", own["backend"])
		assert.Positive(t, d["moved_bytes"])
		assert.EqualValues(t, d["moved_bytes"], own["flash_to_dram_bytes"].(float64)+own["flash_lent_bytes"].(float64),
			"the drive counted what the host planned")
		assert.Equal(t, d["rows"], own["rows"])
	}
}

// TestReportsNameTheirVersion checks that whatever measures, runs, plans or checks says in JSON which binary did, and
// that everything else in it is as without.
func TestReportsNameTheirVersion(t *testing.T) {
	version := buildVersion().Version
	for name, printed := range everyCommand(t) {
		first, _, _ := strings.Cut(name, " ")
		switch {
		case first == "train", first == "demo", first == "preprocess", first == "plan",
			name == "dataset summarize", name == "dataset drift", name == "pipeline check", name == "pipeline init",
			name == "pipeline show",
			name == "operator test", name == "drive validate", name == "image explore":
		default:
			continue
		}
		var results []map[string]any
		if json.Unmarshal([]byte(printed), &results) != nil {
			results = make([]map[string]any, 1)
			require.NoError(t, json.Unmarshal([]byte(printed), &results[0]), name)
		}
		require.NotEmpty(t, results, name)
		for _, r := range results {
			assert.Equal(t, version, r["version"], name)
		}
	}
}

func TestTablesForPeople(t *testing.T) {
	data := generate(t, "--rows", "50")
	for says, args := range map[string][]string{
		"part-00000.parquet": {"dataset", "inspect", data},
		"int_12":             {"dataset", "inspect", data},
		"core.kernels":       {"plan", "--t", "1e6"},
		"usd_per_kwh":        {"plan", "--print-prices"},
		"go1":                {"version"},
		"held back by": {
			"train", "--pipeline", "rm1", "--in", data, "--measure", "1ms", "--trainer-rows-per-second", "1e6",
		},
		"by the reference": {
			"preprocess", "--pipeline", "rm1", "--in", data, "--engine", "reference", "--out",
			filepath.Join(t.TempDir(), "out"),
		},
	} {
		assert.Contains(t, must(t, args...), says)
	}
	assert.Contains(t, must(t, "plan", "--model", "dpp-rm1"),
		"9 of them at once feed the trainers (T/P). Capacity binds")
}

func TestProgressModes(t *testing.T) {
	for _, c := range []struct {
		mode string
		want string // of stderr
	}{
		{"auto", `^generate: 100 of 100 rows, \d+/s\n$`}, // no terminal
		{"plain", `^generate: 100 of 100 rows, \d+/s\n$`},
		{"none", `^$`},
		{"json", `^\{"done":100,"elapsed_seconds":[0-9.e-]+,"progress":"generate","total":100,"unit":"rows"\}\n$`},
	} {
		t.Run(c.mode, func(t *testing.T) {
			code, out, errs := millrace(t, "dataset", "generate", "--rows", "100", "--out", t.TempDir(), "--progress",
				c.mode)
			require.Zero(t, code)
			assert.NotEmpty(t, out)
			assert.Regexp(t, c.want, errs)
		})
	}
}

// TestProgressIsAllJSONWhenAsked checks that a job's messages beside its progress are JSON lines too, and that there
// are none with progress "none".
func TestProgressIsAllJSONWhenAsked(t *testing.T) {
	data := generate(t, "--rows", "300")
	for _, command := range [][]string{
		{"train", "--pipeline", "rm1", "--in", data, "--measure", "1ms", "--trainer-rows-per-second", "1e6"},
		{"demo", "--rows", "500", "--slm", "64MiB", "--measure", "10ms", "--trainer-rows-per-second", "1e6"},
	} {
		_, _, errs := millrace(t, append(command, "--progress", "json")...)
		require.NotEmpty(t, errs)
		for line := range strings.Lines(errs) {
			var v map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		}
		_, _, errs = millrace(t, append(command, "--progress", "none")...)
		assert.Empty(t, errs)
	}
}

// TestBarsEnd: on a terminal a task's bar ends when the task does, also one that stops early, one that goes on past
// its total, and one whose total is not known.
func TestBarsEnd(t *testing.T) {
	for _, c := range []struct{ total, done int64 }{{100, 100}, {100, 3}, {100, 0}, {0, 0}, {0, 7}, {5, 9}} {
		var w bytes.Buffer
		cmd := &console{cli.Console{Streams: cli.Streams{Err: &w}, Progress: "bars"}}
		p := cmd.newProgress("task", "rows", c.total)
		p.add(c.done)
		ended := make(chan struct{})
		go func() {
			p.finish()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("the bar of %d of %d waits without end", c.done, c.total)
		}
	}
}

// TestPlainLinesAreRare checks that there is one line a second at most, so that a log is not full of them.
func TestPlainLinesAreRare(t *testing.T) {
	var w bytes.Buffer
	p := (&console{cli.Console{Streams: cli.Streams{Err: &w}, Progress: "plain"}}).newProgress("task", "rows", 1000)
	for range 1000 {
		p.add(1)
	}
	p.finish()
	assert.LessOrEqual(t, strings.Count(w.String(), "\n"), 1+int(time.Since(p.begun)/lineInterval))
	assert.Contains(t, w.String(), "task: 1000 of 1000 rows")
}

// TestCountsBesideTheUnit checks what a line says of other units, and of the time that is left.
func TestCountsBesideTheUnit(t *testing.T) {
	counts := []progressCount{{name: "splits", done: 1, total: 8}, {name: "keys", done: 40}}
	lines := func(mode string, total int64) string {
		var w bytes.Buffer
		p := (&console{cli.Console{Streams: cli.Streams{Err: &w}, Progress: mode}}).newProgress("vocabulary v", "rows", total)
		p.begun = p.begun.Add(-10 * time.Second)
		p.add(250, counts...)
		p.finish()
		return w.String()
	}
	assert.Regexp(t, `^vocabulary v: 250 of 1000 rows, 1 of 8 splits, 40 keys, 2\d/s, 3[01]s left\n$`,
		lines("plain", 1000))
	assert.Regexp(t, `^vocabulary v: 250 of 250 rows, 1 of 8 splits, 40 keys, 2\d/s\n$`, lines("plain", 250))
	assert.Regexp(t, `^vocabulary v: 250 rows, 1 of 8 splits, 40 keys, 2\d/s\n$`, lines("plain", 0))
	shown := &console{cli.Console{Streams: cli.Streams{Err: io.Discard}, Progress: "bars"}}
	bar := shown.newProgress("vocabulary v", "rows", 1000)
	bar.add(250, counts...)
	bar.finish()
	assert.Equal(t, ", 1 of 8 splits, 40 keys", *bar.text.Load())
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines("json", 1000)), &line))
	assert.InDelta(t, 30, line["remaining_seconds"], 3)
	delete(line, "remaining_seconds")
	delete(line, "elapsed_seconds")
	assert.Equal(t, map[string]any{"progress": "vocabulary v", "unit": "rows", "done": 250., "total": 1000.,
		"splits": 1., "all_splits": 8., "keys": 40.}, line)
}

func TestDocumentCommentNamesEveryCommand(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	comment, _, ok := strings.Cut(string(source), "\npackage main")
	require.True(t, ok)
	for _, c := range newRoot(cli.Streams{}).Commands() {
		if c.Hidden {
			continue
		}
		want := "//\tmillrace " + c.Name() + " "
		if c.HasSubCommands() {
			want += "... "
		}
		assert.Contains(t, comment, want)
	}
}
