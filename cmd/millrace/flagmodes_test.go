package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// usedInEveryMode are the flags that every mode of the commands below uses.
var usedInEveryMode = strings.Fields("build-vocabulary by-partition columns context control format help image-time " +
	"local measure memory name out output overwrite pipeline progress queue record-starved statistics stop-after " +
	"trainer-cpu trainer-rows-per-second verbose vocabulary wasm whole wide checkpoint local input-format engine in " +
	"drive batch split-batches tail dilate timing")

// TestEveryFlagIsUsedOrRefused gives every flag of the commands that read rows to every mode that does not use it. None
// may be ignored.
func TestEveryFlagIsUsedOrRefused(t *testing.T) {
	data := generate(t, "--rows", "10")
	text := file(t, "day.tsv", strings.Repeat("1"+strings.Repeat("\t1", 39)+"\n", 3))
	binary := file(t, "day.bin", string(bytes.Repeat([]byte{1, 0, 0, 0}, 40)))
	counted := file(t, "counted.yaml", "label: {column: label}\nsparse:\n  - columns: [cat_0]\n"+
		"    ops: [vocabulary: v]\nvocabularies: {v: {}}\n")
	none := "http://127.0.0.1:1"
	runs := []struct {
		mode modes
		args []string
	}{
		{overFiles | byDrive | ofParquet | nearFiles, []string{"--in", data}},
		{overFiles | byReference | ofParquet | nearFiles, []string{"--in", data, "--engine", "reference"}},
		{overFiles | byCPU | ofParquet | nearFiles, []string{"--in", data, "--engine", "cpu"}},
		{overFiles | byRTL | nearFiles, []string{"--in", data, "--engine", "rtl"}},
		{overFiles | byDrive | ofText | nearFiles, []string{"--in", text, "--input-format", "criteo-tsv"}},
		{overFiles | byDrive | ofBinary | nearFiles, []string{"--in", binary, "--input-format", "criteo-bin"}},
		{overFiles | byCPU | webFiles, []string{"--in", none + "/a.parquet"}},
		{overDrives | byDrive | nearFiles, []string{"--drive", "mem:"}},
		{overDrives | byCPU | nearFiles, []string{"--drive", "mem:", "--engine", "cpu"}},
		{onAccelerator | byDrive | nearFiles, []string{"--in", data, "--accelerator", "mem:"}},
		{onService, []string{"--control", none}},
		{onJob, []string{"--control", none, "--job", "x"}},
	}
	const reads, cluster = inProcess, inProcess | onService
	commands := []struct {
		args   []string
		modes  modes // the modes of the first group that the command has
		tables map[modes][]flagUses
	}{
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT"}, reads,
			map[modes][]flagUses{inProcess: {inputUses, sourceUses, selectionUses}}},
		{[]string{"train", "--pipeline", "rm1", "--measure", "1ms"}, cluster | onJob, map[modes][]flagUses{
			inProcess:         {inputUses, sourceUses, selectionUses, planUses, trainUses},
			onService | onJob: {hereUses, planUses, trainUses}}},
		{[]string{"dataset", "summarize"}, cluster,
			map[modes][]flagUses{inProcess: {inputUses, sourceUses, clusterUses}, onService: {hereUses}}},
		{[]string{"vocabulary", "build", "--pipeline", counted, "--out", "OUT"}, cluster,
			map[modes][]flagUses{inProcess: {inputUses, sourceUses, clusterUses}, onService: {hereUses}}},
	}
	values := map[string]string{"label": "absent", "malformed": "drop", "commands": "standard", "slm": "64MiB",
		"coalesce": "64KiB", "timing": "smartssd", "engine": "cpu", "input-format": "parquet", "drive": "mem:",
		"accelerator": "mem:", "tail": "drop", "shuffle": "rows", "order": "deterministic", "rank-tail": "keep",
		"placement": "pool", "disk": "1GiB", "split": "train:0.9"}
	value := func(f *pflag.Flag) string {
		if v, ok := values[f.Name]; ok {
			return v
		}
		switch f.Value.Type() {
		case "string", "stringArray", "stringSlice", "names":
			return "x"
		case "duration":
			return "1s"
		case "bool":
			return "true"
		}
		return "2"
	}
	listed := slices.Clone(usedInEveryMode)
	for _, table := range []flagUses{inputUses, sourceUses, planUses, selectionUses, hereUses, clusterUses, trainUses} {
		names := table.names()
		assert.Len(t, slices.Compact(slices.Sorted(slices.Values(names))), len(names), "each flag is there once")
		listed = append(listed, names...)
	}
	refused := 0
	for _, c := range commands {
		found, _, err := newRoot(cli.Streams{}).Find(c.args)
		require.NoError(t, err)
		found.InheritedFlags() // adds the flags of the root
		found.Flags().VisitAll(func(f *pflag.Flag) {
			assert.Contains(t, listed, f.Name, "%s: say in flagmodes.go which modes use it, or that every mode does",
				found.CommandPath())
		})
		for _, run := range runs {
			if run.mode&c.modes == 0 || run.mode&byRTL != 0 && c.args[0] != "preprocess" {
				continue
			}
			args := slices.Clone(c.args)
			if run.mode&onJob != 0 {
				args = args[:1]
			}
			args = append(args, run.args...)
			for of, tables := range c.tables {
				if run.mode&of != 0 {
					mode := run.mode | withoutFilter | withoutOwnCPUs | mixesSplits
					refused += refusesUnused(t, found, args, mode, tables, value)
				}
			}
		}
	}
	assert.Greater(t, refused, 200)

	seed := []string{"train", "--pipeline", "rm1", "--in", data, "--shuffle", "none", "--seed", "3"}
	refusesFlag(t, "seed", seed...)
	refusesFlag(t, "window", "jobs", "submit", "--pipeline", "rm1", "--control", none, "--window", "2")
	for _, name := range cli.ZeroIsDefault {
		refusesFlag(t, name, "train", "--pipeline", "rm1", "--in", data, "--"+name, "0")
	}
	refusesFlag(t, "label", "dataset", "import", "--out", "OUT", "--label", "absent", data)
	refusesFlag(t, "source-ca", "dataset", "inspect", "--source-ca", "none.pem", data)
	refusesFlag(t, "label", "dataset", "drift", "--label", "absent", data+"/part-00000.parquet",
		data+"/part-00000.parquet")
	refusesFlag(t, "source-ca", "plan", "--t", "1M", "--pipeline", "rm1", "--in", data, "--source-ca", "none.pem")
}

// refusesUnused gives a command every flag that its mode does not use, and returns the number of these flags.
func refusesUnused(t *testing.T, c *cobra.Command, args []string, mode modes, tables []flagUses,
	value func(*pflag.Flag) string) (refused int) {
	t.Helper()
	for _, table := range tables {
		for _, name := range table.names() {
			f := c.Flags().Lookup(name)
			if f == nil || slices.Contains(args, "--"+name) || name == "accelerator" && mode&webFiles != 0 ||
				table.refuse(f, []modes{mode}) == nil {
				continue
			}
			refused++
			refusesFlag(t, name, append(slices.Clone(args), "--"+name+"="+value(f))...)
		}
	}
	return refused
}

// names returns the flags of a table.
func (t flagUses) names() (names []string) {
	for list := range t {
		names = append(names, strings.Fields(list)...)
	}
	return names
}

// refusesFlag demands that a command ends with a usage error that names a flag.
func refusesFlag(t *testing.T, name string, args ...string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	for i, a := range args {
		if a == "OUT" {
			args = slices.Clone(args)
			args[i] = out
		}
	}
	code, _, errs := millrace(t, args...)
	assert.Equal(t, exitUsage, code, "%q: %s", args, errs)
	assert.Contains(t, errs, "--"+name+" ", "%q", args)
}
