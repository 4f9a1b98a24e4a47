package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/trainmgr"
)

// decode reads the JSON that a command printed.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// drives makes drives of a block size, deals a folder's partitions to them in turn, and returns their URIs.
func drives(t *testing.T, data string, n, lba int) []string {
	t.Helper()
	parts, err := filepath.Glob(data + "/*.parquet")
	require.NoError(t, err)
	require.NotEmpty(t, parts)
	dir := t.TempDir()
	uris := make([]string, n)
	for d := range uris {
		uris[d] = fmt.Sprintf("file:%s/d%d.flash", dir, d)
		must(t, "drive", "create", fmt.Sprintf("%s?size=64MiB&lba=%d&slm=64MiB", uris[d], lba))
		var mine []string
		for i := d; i < len(parts); i += n {
			mine = append(mine, parts[i])
		}
		must(t, append([]string{"drive", "put", uris[d]}, mine...)...)
	}
	return uris
}

// content reads an output, file or folder, as a map from name to bytes.
func content(t *testing.T, path string) map[string]string {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	files := []string{path}
	if info.IsDir() {
		files, err = filepath.Glob(path + "/*")
		require.NoError(t, err)
	}
	m := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		m[filepath.Base(f)] = string(b)
	}
	return m
}

// TestFromNothingToTensors is the storage-node operator's way: generate, look, put on drives, look again, preprocess.
// The output is the same byte for byte for every place of the partitions and every engine.
func TestFromNothingToTensors(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "3", "--row-group-rows", "90", "--codec", "snappy",
		"--page-bytes", "2000", "--encoding", "dictionary")
	info := decode[[]partitionfile.Description](t, must(t, "dataset", "inspect", data, "--output", "json"))
	require.Len(t, info, 3)
	rows := int64(0)
	for i, v := range info {
		assert.Equal(t, fmt.Sprintf("%s/part-%05d.parquet", data, i), v.Path)
		assert.Len(t, v.Columns, 40)
		assert.Len(t, v.RowGroups, 3)
		for _, k := range v.Columns {
			assert.Empty(t, k.Refused)
			assert.Equal(t, "SNAPPY", k.Codec)
		}
		rows += v.Rows
	}
	assert.EqualValues(t, 600, rows)

	uris := drives(t, data, 2, 4096)
	var names []string
	for _, uri := range uris {
		for _, m := range decode[[]storedFile](t, must(t, "drive", "ls", uri, "--output", "json")) {
			names = append(names, m.Name)
		}
		v := decode[driveInfo](t, must(t, "drive", "info", uri, "--output", "json"))
		assert.Equal(t, 4096, v.BlockSize)
		assert.EqualValues(t, 64<<20, v.Size)
		assert.Len(t, v.Namespaces, 3)
		assert.NotNil(t, v.Counters)
	}
	assert.Equal(t, []string{"part-00000.parquet", "part-00002.parquet", "part-00001.parquet"}, names)

	ways := map[string][]string{
		"files, drive (vendor)":   {"--in", data, "--engine", "drive"},
		"files, drive (standard)": {"--in", data, "--engine", "drive", "--commands", "standard", "--slm", "32MiB"},
		"files, cpu":              {"--in", data, "--engine", "cpu", "--threads", "2"},
		"drives, vendor":          {"--drive", uris[0], "--drive", uris[1]},
		"drives, standard": {
			"--drive", uris[0] + "?commands=standard", "--drive", uris[1] + "?commands=standard&threads=2",
		},
		"drives, small memory":   {"--drive", uris[0] + "?slm=16MiB", "--drive", uris[1], "--slm", "16MiB"},
		"drives, the node's CPU": {"--drive", uris[0], "--drive", uris[1], "--engine", "cpu"},
		"drives, reference":      {"--drive", uris[0], "--drive", uris[1], "--engine", "reference"},
		"patterns of files": {
			"--in", data + "/part-0000[01]*", "--in", data + "/part-00002.parquet", "--queue", "1MiB",
		},
		"members by name, mixed":    {"--drive", uris[1], "--drive", uris[0], "--in", "part-*"},
		"another cut of the splits": {"--in", data, "--split-batches", "1"},
	}
	for _, format := range []string{"npy", "arrow"} {
		want := map[string]string{}
		if format == "arrow" { // a mini-batch's name is in the file, and splits are part of the job's digest
			delete(ways, "another cut of the splits")
			delete(ways, "drives, reference") // it is slow
		}
		for name, flags := range ways {
			t.Run(format+" "+name, func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out")
				report := decode[preprocessResult](t,
					must(t, append([]string{"preprocess", "--pipeline", "rm1", "--batch", "48", "--format", format,
						"--out", out, "--output", "json"}, flags...)...))
				assert.EqualValues(t, 600, report.Rows)
				got := content(t, out)
				require.NoDirExists(t, out+".partial")
				require.NoFileExists(t, out+".partial")
				if len(want) == 0 {
					want = got
					require.Greater(t, len(got[filepath.Base(out)])+len(got["keys.json"]), 100)
				}
				require.Len(t, got, len(want))
				for f := range want {
					require.True(t, want[f] == got[f], "%s differs", f)
				}
			})
		}
	}
}

// TestTrainStopsAndResumes checks that mini-batches that a trainer acknowledged before it stopped never come again,
// and that all others do.
func TestTrainStopsAndResumes(t *testing.T) {
	data := generate(t, "--rows", "4000", "--partitions", "3", "--row-group-rows", "500")
	for _, order := range []string{"fastest", "deterministic"} {
		for _, shuffle := range []string{"none", "splits", "rows"} {
			t.Run(order+" "+shuffle, func(t *testing.T) {
				token := filepath.Join(t.TempDir(), "job.token")
				flags := []string{"train", "--pipeline", "rm1", "--in", data, "--spread", "3", "--batch", "100",
					"--split-batches", "4", "--order", order, "--shuffle", shuffle,
					"--epochs", "2", "--trainer-rows-per-second", "1e7", "--measure", "1ms",
					"--checkpoint", token, "--output", "json", "--progress", "none", "--slm", "16MiB"}
				if shuffle != "none" {
					flags = append(flags, "--seed", "7")
				}
				var rows, batches int64
				var job string
				for i, stop := range []string{"1", "3", "41", "9", "", ""} {
					stops := flags
					if stop != "" {
						stops = append(slices.Clone(flags), "--stop-after", stop)
					}
					r := decode[trainmgr.Report](t, must(t, stops...))
					if stop != "" {
						assert.Equal(t, stop, fmt.Sprint(r.MiniBatches))
					}
					if i == 0 {
						job = r.Job
					}
					assert.Equal(t, job, r.Job)
					rows, batches = rows+r.Rows, batches+r.MiniBatches
					require.FileExists(t, token)
				}
				assert.EqualValues(t, 2*4000, rows, "every row of both epochs once")
				assert.EqualValues(t, 2*42, batches)
			})
		}
	}
}

func TestTrainRefusesACheckpointOfAnotherJob(t *testing.T) {
	data := generate(t, "--rows", "400")
	token := filepath.Join(t.TempDir(), "job.token")
	flags := []string{
		"train", "--pipeline", "rm1", "--in", data, "--batch", "100", "--trainer-rows-per-second", "1e7", "--measure",
		"1ms", "--checkpoint", token, "--progress", "none",
	}
	must(t, append(flags, "--stop-after", "1", "--epochs", "2")...)
	was, err := os.ReadFile(token)
	require.NoError(t, err)
	for flag, value := range map[string]string{"--seed": "1", "--batch": "50"} {
		code, _, errs := millrace(t, append(flags, flag, value)...)
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, "token")
	}
	now, err := os.ReadFile(token)
	require.NoError(t, err)
	assert.Equal(t, was, now, "a job that was refused leaves the token as it was")
	first, _, _ := bytes.Cut(was, []byte("\n"))
	for says, size := range map[string]int{"checkpoint token": len(first) / 2, "stamps": len(was) - 1} {
		require.NoError(t, os.WriteFile(token, was[:size], 0o644))
		code, _, errs := millrace(t, flags...)
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, token, says)
	}
}

func TestDriveRefusals(t *testing.T) {
	data := generate(t, "--rows", "3000", "--partitions", "2")
	part := data + "/part-00000.parquet"
	dir := t.TempDir()
	uri := "file:" + dir + "/d.flash"
	must(t, "drive", "create", uri+"?size=512KiB&lba=4096")
	must(t, "drive", "put", uri, part)
	listed := must(t, "drive", "ls", uri)
	before, err := os.ReadFile(dir + "/d.flash")
	require.NoError(t, err)
	info, err := os.Stat(data + "/part-00001.parquet")
	require.NoError(t, err)
	free := 512<<10 - (512 + (int(mustStat(t, part).Size())+511)/512*512)
	need := 512 + (int(info.Size())+511)/512*512 + 1024
	require.Greater(t, need, free)
	for _, c := range []struct {
		name string
		args []string
		says []string
	}{
		{
			"a name that is there", []string{"drive", "put", uri, part},
			[]string{"part-00000.parquet", "member exists already"},
		},
		{
			"a drive that is full", []string{"drive", "put", uri, data + "/part-00001.parquet"},
			[]string{"drive is full", fmt.Sprintf("needs %d bytes, %d are free", need, free)},
		},
		{"a file that is not there", []string{"drive", "put", uri, dir + "/none"}, []string{"none"}},
		{"a folder", []string{"drive", "put", uri, data}, []string{"not a regular file"}},
		{"one that exists", []string{"drive", "create", uri}, []string{"d.flash", "exist"}},
		{"another size", []string{"drive", "info", uri + "?size=1MiB"}, []string{"another geometry"}},
		{"another block size", []string{"drive", "ls", uri + "?lba=512"}, []string{"another geometry"}},
		{
			"a member that is not there", []string{
				"preprocess", "--pipeline", "rm1", "--drive", uri, "--in", "part-9*", "--out", dir + "/out",
			}, []string{`"part-9*"`, "millrace drive ls"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := millrace(t, append(c.args, "--progress", "none")...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, out)
			errorLine(t, errs, c.says...)
			after, err := os.ReadFile(dir + "/d.flash")
			require.NoError(t, err)
			assert.True(t, string(before) == string(after), "the flash was touched")
			assert.Equal(t, listed, must(t, "drive", "ls", uri))
		})
	}
	assert.NoFileExists(t, dir+"/out")

	t.Run("a second opener", func(t *testing.T) {
		dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
		require.NoError(t, err)
		for _, args := range [][]string{
			{"drive", "info", uri}, {"drive", "ls", uri}, {"drive", "put", uri, part},
			{"preprocess", "--pipeline", "rm1", "--drive", uri, "--out", dir + "/out"},
			{"train", "--pipeline", "rm1", "--drive", uri},
		} {
			code, _, errs := millrace(t, args...)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs, "open elsewhere", "d.flash")
		}
		require.NoError(t, dev.Close())
		must(t, "drive", "ls", uri)
	})
	t.Run("the same drive twice", func(t *testing.T) {
		code, _, errs := millrace(t, "preprocess", "--pipeline", "rm1", "--drive", uri, "--drive", uri, "--out", dir+
			"/out")
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, "d.flash")
	})
	t.Run("several files, the second refused", func(t *testing.T) {
		other := "file:" + dir + "/e.flash"
		must(t, "drive", "create", other+"?size=1MiB")
		code, _, errs := millrace(t, "drive", "put", other, part, part)
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, "exists already", "(on the drive before it: 1 file)")
		assert.Contains(t, must(t, "drive", "ls", other), "part-00000.parquet")
	})
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}

// TestPathsWithOddNames: a % and a ? in a path are written as in any URI.
func TestPathsWithOddNames(t *testing.T) {
	data := generate(t, "--rows", "100")
	dir := filepath.Join(t.TempDir(), "100% what? #1")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	uri := "file:" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(dir) + "/d.flash"
	must(t, "drive", "create", uri+"?size=1MiB")
	require.FileExists(t, dir+"/d.flash")
	must(t, "drive", "put", uri, data+"/part-00000.parquet")
	must(t, "preprocess", "--pipeline", "rm1", "--drive", uri, "--out", dir+"/out", "--batch", "64")
	must(t, "demo", "--rows", "300", "--slm", "32MiB", "--measure", "1ms", "--dir", dir+"/demo",
		"--trainer-rows-per-second", "1e6")
	code, _, errs := millrace(t, "demo", "--rows", "300", "--dir", dir, "--progress", "none")
	assert.Equal(t, exitFailed, code)
	errorLine(t, errs, "name an empty folder")
}

// TestADataSetWithoutRows checks that its output is whole and has no rows, and that a trainer gets an error that says
// so.
func TestADataSetWithoutRows(t *testing.T) {
	data := generate(t, "--rows", "0", "--partitions", "2")
	for _, engine := range []string{"reference", "cpu", "drive"} {
		for _, format := range []string{"npy", "arrow"} {
			out := filepath.Join(t.TempDir(), "out")
			r := decode[preprocessResult](t,
				must(t, "preprocess", "--pipeline", "rm1", "--in", data, "--engine", engine,
					"--format", format, "--out", out, "--output", "json"))
			assert.Zero(t, r.Rows)
			assert.NotEmpty(t, content(t, out))
		}
	}
	code, _, errs := millrace(t, "train", "--pipeline", "rm1", "--in", data, "--measure", "1ms",
		"--progress", "none")
	assert.Equal(t, exitFailed, code)
	errorLine(t, errs, "no drive holds a row")
}
