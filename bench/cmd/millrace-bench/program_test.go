package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster/clustertest"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/cmd/cli/clitest"
)

const exitUsage = cli.ExitUsage

// tree is the command line as tests run it.
var tree = clitest.Program{New: newRoot, Below: "bench"}

func TestMain(m *testing.M) { clustertest.Main(m) }

// millrace runs a command line and returns its exit status, standard output and standard error.
func millrace(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return tree.Run(args...)
}

// must runs a command line and wants status 0.
func must(t *testing.T, args ...string) string {
	t.Helper()
	return tree.Must(t, args...)
}

// errorLine demands that stderr is one line of an error that says all of that.
func errorLine(t *testing.T, stderr string, says ...string) {
	t.Helper()
	require.Regexp(t, `^millrace: [^\n]*\n$`, stderr)
	for _, s := range says {
		assert.Contains(t, stderr, s)
	}
}

// refuses demands that a command of bench is refused as wrongly used, with one line that says what is wrong.
func refuses(t *testing.T, says string, command ...string) {
	t.Helper()
	status, stdout, stderr := millrace(t, append([]string{"bench"}, command...)...)
	assert.Equal(t, exitUsage, status, stderr)
	assert.Empty(t, stdout)
	errorLine(t, stderr, says)
}

// decode decodes what a command printed in JSON.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func TestEveryCommandHasHelpAndAnExampleThatParses(t *testing.T) { tree.CheckHelp(t) }

func TestEveryFlagSaysWhatItIs(t *testing.T) { tree.CheckFlags(t) }

func TestManual(t *testing.T) { tree.CheckManual(t) }

func TestCommandsAreDocumented(t *testing.T) {
	tree.CheckDocument(t, "../../../docs/commands.md", "\n# Commands that measure\n\n"+
		"`millrace bench` runs the program millrace-bench, which has these commands.\n\n")
}

func TestVersion(t *testing.T) {
	assert.Equal(t, cli.VersionLine(), strings.TrimSpace(must(t, "--version"))[:len(cli.VersionLine())])
}

// statuses has every command.
var statuses = map[string]clitest.Status{
	"bench operators": {"--threads 0", "--values 10 --time 1ms --temporary NONE/none"},
	"bench rm":        {"--engine gpu", ""},
	"bench roofline":  {"--time 0s", ""},
	"bench pipeline":  {"--ways moon", ""},
	"bench papers":    {"--paper moon", ""},
	"bench placement": {"--modes moon", ""},
	"bench regions":   {"--regions 8", "--rows 10 --models rm1 --drive file:NONE/none"},
	"bench service":   {"--time 0s", ""},
	"bench wire":      {"--size much", ""},
	"bench offload":   {"--cases 2000000", "--replay NONE"},
}

// TestEveryCommandsStatus calls each command wrongly, and so that it fails.
func TestEveryCommandsStatus(t *testing.T) { tree.CheckStatuses(t, statuses) }

// TestRefusedFlags checks that the error of a wrong flag names the valid form.
func TestRefusedFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"bogus"}, "unknown command"},
		{[]string{"rm", "--models", "rm1,rm9"}, "rm9"},
		{[]string{"rm", "--engine", "gpu"}, "reference, cpu or drive"},
		{[]string{"rm", "--commands", "x"}, "vendor or standard"},
		{[]string{"rm", "--threads", "0"}, "--threads"},
		{[]string{"rm", "--progress", "none", "--rows", "10", "--time", "1ms", "--codec", "lzo"}, "codec"},
	} {
		refuses(t, c.says, c.args...)
	}
}

// TestReports runs every command with little data and looks at what it prints in JSON: the keys, and the version that
// made it. It takes most of a minute on a busy machine, because it runs the smallest paper of bench papers, bench
// service and bench pipeline.
func TestReports(t *testing.T) {
	clustertest.Program(t)
	printed := map[string]string{}
	for _, args := range []string{
		"rm --models rm1 --rows 500 --time 1ms",
		"operators --values 1000 --time 1ms",
		"roofline --models rm1 --rows 500 --time 1ms",
		"placement --time 1ms --rows 500 --batch 100 --slm 64MiB",
		"regions --time 1ms --rows 500 --turns 1 --switches 2 --regions 2 --models rm1 --drive mem:?slm=128MiB",
		"offload --cases 2",
		"papers --paper dpp --quick",
		"wire --time 4ms --depths 1 --connections 1 --digests off --size 2MiB",
		"service --time 40ms --nodes 1 --transports unix --rows 256 --splits 1000 --drive-rows 2000 --no-failover",
		"pipeline --models rm1 --time 20ms --rounds 1 --rows 1000 --partitions 1 --ways drive,launcher-unix,raw-unix",
	} {
		words := strings.Fields("bench " + args + " --output json --progress none")
		printed[words[0]+" "+words[1]] = must(t, words...)
	}
	for _, c := range tree.Commands()[1:] {
		assert.NotEmpty(t, printed[strings.TrimPrefix(c.CommandPath(), "millrace ")], c.CommandPath())
	}
	clitest.CheckKeys(t, printed)
	for name, text := range printed {
		var results []map[string]any
		if json.Unmarshal([]byte(text), &results) != nil {
			results = []map[string]any{decode[map[string]any](t, text)}
		}
		require.NotEmpty(t, results, name)
		for _, r := range results {
			assert.Equal(t, strings.TrimPrefix(cli.VersionLine(), "millrace "), r["version"], name)
		}
	}
	for _, key := range []string{"model", "engine", "threads", "rows", "rows_per_second", "input_bytes_per_second",
		"output_bytes_per_second", "move_share", "decode_share", "transform_share", "fetch_share"} {
		assert.Contains(t, decode[[]map[string]any](t, printed["bench rm"])[0], key)
	}
}

// TestProgress checks that messages are JSON lines when they are to be, and that there are none with progress "none".
func TestProgress(t *testing.T) {
	rm := []string{"bench", "rm", "--models", "rm1", "--rows", "100", "--time", "1ms", "--progress"}
	_, out, errs := millrace(t, append(rm, "json")...)
	assert.Contains(t, out, "rows/s")
	require.NotEmpty(t, errs)
	for line := range strings.Lines(errs) {
		decode[map[string]any](t, line)
	}
	_, _, errs = millrace(t, append(rm, "none")...)
	assert.Empty(t, errs)
}
