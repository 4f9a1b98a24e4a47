package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/objectserver"
)

// served serves a folder's files as objects of the bucket rows, below days/, and points S3 there.
func served(t *testing.T, folder string) *objectserver.Server {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE":         "",
		"AWS_ENDPOINT_URL_S3": "", "AWS_ENDPOINT_URL": "", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	server := objectserver.New(t)
	for name, text := range content(t, folder) {
		server.Put("rows/days/"+name, []byte(text))
	}
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	return server
}

// TestFilesThatLieElsewhere: the same tensors and the same job come of files here, behind HTTP and in S3, by every
// engine that reads them, and also where some lie here and some there.
func TestFilesThatLieElsewhere(t *testing.T) {
	data := generate(t, "--rows", "2000", "--partitions", "3", "--row-group-rows", "300", "--codec", "snappy",
		"--page-bytes", "2000")
	server := served(t, data)
	web := server.URL + "/rows/days/"
	preprocess := func(in ...string) (preprocessResult, map[string]string) {
		out := filepath.Join(t.TempDir(), "out")
		r := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--pipeline", "rm1", "--progress",
			"none", "--out", out, "--output", "json", "--batch", "100"}, in...)...))
		return r, content(t, out)
	}
	want, tensors := preprocess("--in", data)
	require.Nil(t, want.PerDrive[0].Source)
	all := []string{"part-00000.parquet", "part-00001.parquet", "part-00002.parquet"}
	for name, in := range map[string][]string{
		"http":      {"--in", web + all[0], web + all[1], web + all[2] + "?token=x"},
		"pattern":   {"--in", "s3://rows/days/part-*.parquet"},
		"folder":    {"--in", "s3://rows/days/", "--threads", "2"},
		"reference": {"--in", "s3://rows/days/part-0000?.parquet", "--engine", "reference"},
		"mixed":     {"--in", filepath.Join(data, all[0]), "--in", web + all[1], "--in", "s3://rows/days/" + all[2]},
		"card":      {"--in", "s3://rows/days/*", "--accelerator", "mem:?size=0&slm=64MiB"},
		"diskless":  {"--drive", "mem:?size=0&slm=64MiB", "--in", web + all[0], web + all[1], web + all[2]},
		"endpoint":  {"--in", "s3://rows/days/*", "--s3-endpoint", server.URL, "--engine", "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			got, there := preprocess(in...)
			assert.Equal(t, want.Job, got.Job)
			assert.Equal(t, want.Rows, got.Rows)
			require.Equal(t, len(tensors), len(there))
			for file := range tensors {
				assert.True(t, tensors[file] == there[file], file)
			}
			s := got.PerDrive[0].Source
			require.NotNil(t, s)
			assert.Positive(t, s.Requests)
			assert.Positive(t, s.Bytes)
			assert.Zero(t, s.Retries)
		})
	}

	here := decode[[]partitionfile.Description](t, must(t, "dataset", "inspect", filepath.Join(data, all[0]),
		"--output", "json"))
	for _, uri := range []string{"s3://rows/days/part-00000.*", web + all[0]} {
		there := decode[[]partitionfile.Description](t, must(t, "dataset", "inspect", uri, "--output", "json"))
		require.Len(t, there, 1)
		there[0].Path = here[0].Path
		assert.Equal(t, here, there)
	}

	train := must(t, "train", "--pipeline", "rm1", "--in", "s3://rows/days/", "--trainer-rows-per-second", "1e9",
		"--measure", "1ms", "--progress", "none", "--output", "json", "--batch", "100")
	assert.Contains(t, train, `"rows": 2000`)
}

// TestTextThatLiesElsewhere: text is read from its beginning to its end.
func TestTextThatLiesElsewhere(t *testing.T) {
	row := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "day_0"), []byte(strings.Repeat(row, 5000)), 0o644))
	served(t, dir)
	outputs := make([]map[string]string, 2)
	for i, in := range []string{filepath.Join(dir, "day_0"), "s3://rows/days/day_0"} {
		out := filepath.Join(t.TempDir(), "out")
		must(t, "preprocess", "--pipeline", "criteo", "--in", in, "--out", out, "--progress", "none")
		outputs[i] = content(t, out)
	}
	assert.Equal(t, outputs[0], outputs[1])
}

// TestSourcesThatGoWrong checks that the error is one line with the file's name, and that no output is left.
func TestSourcesThatGoWrong(t *testing.T) {
	data := generate(t, "--rows", "20000", "--row-group-rows", "4000", "--codec", "none")
	server := served(t, data)
	const key = "rows/days/part-00000.parquet"
	web := server.URL + "/" + key
	for _, c := range []struct {
		says []string
		in   []string
	}{
		{[]string{"s3://rows/days/none.parquet", "does not exist"}, []string{"--in", "s3://rows/days/none.parquet"}},
		{[]string{"s3://rows/days/none*", "does not exist"}, []string{"--in", "s3://rows/days/none*"}},
		{[]string{server.URL + "/rows/none.parquet", "does not exist"},
			[]string{"--in", server.URL + "/rows/none.parquet?s"}},
		{[]string{"HTTP has no listing"}, []string{"--in", server.URL + "/rows/days/*.parquet"}},
		{[]string{"--engine cpu", "dataset place"}, []string{"--in", web, "--engine", "drive"}},
		{[]string{"would both be called"}, []string{"--in", web, "--in", "s3://" + key}},
	} {
		refused(t, c.says, append([]string{"--pipeline", "rm1"}, c.in...)...)
	}
	code, _, errs := millrace(t, "preprocess", "--pipeline", "rm1", "--in", "s3://"+key, "--out", "x", "--s3-endpoint",
		"nowhere")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--s3-endpoint")

	// The object is written again while it is read.
	var reads atomic.Int64
	original := []byte(content(t, data)["part-00000.parquet"])
	server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && reads.Add(1) == 3 {
			server.Put(key, bytes.Repeat([]byte{1}, len(original)))
		}
		return false
	})
	refusedAs(t, []string{"npy"}, []string{"s3://" + key, "changed: pinned etag:" + strconv.Itoa(len(original))},
		"--pipeline", "rm1", "--in", "s3://"+key)

	// The second answer is cut off, and every later one is of another range.
	server.Put(key, original)
	reads.Store(0)
	server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		switch reads.Add(1) {
		case 1:
		case 2:
			panic(http.ErrAbortHandler)
		default:
			r.Header.Set("Range", "bytes=0-0")
		}
		return false
	})
	out := filepath.Join(t.TempDir(), "out")
	code, _, errs = millrace(t, "preprocess", "--pipeline", "rm1", "--in", "s3://"+key, "--out", out, "--progress",
		"none")
	assert.Equal(t, exitFailed, code, "a server that lies about ranges is not asked again")
	assert.Contains(t, errs, "makes no sense")

	// It is throttled and truncated now and then, which does not show in the result.
	reads.Store(0)
	server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
		switch reads.Add(1) % 5 {
		case 0:
			objectserver.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
		case 3:
			if r.Method == http.MethodHead {
				return false
			}
			span := strings.TrimPrefix(r.Header.Get("Range"), "bytes=")
			w.Header().Set("ETag", objectserver.ETag(original))
			w.Header().Set("Content-Range", "bytes "+span+"/"+strconv.Itoa(len(original)))
			w.WriteHeader(http.StatusPartialContent)
			w.(http.Flusher).Flush() // and not a byte
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	r := decode[preprocessResult](t, must(t, "preprocess", "--pipeline", "rm1", "--in", web, "--out", out,
		"--progress", "none", "--output", "json"))
	assert.EqualValues(t, 20000, r.Rows)
	assert.Positive(t, r.PerDrive[0].Source.Retries)
}

// TestImportFromElsewhere: Parquet files behind HTTP and in S3 are copied byte for byte, also when the store throttles
// and cuts answers. Text becomes the partitions that it becomes from a file of this machine. An object that changes
// between its examination and its copy is an error, and no file is left.
func TestImportFromElsewhere(t *testing.T) {
	data := generate(t, "--rows", "3000", "--partitions", "2", "--codec", "snappy")
	server := served(t, data)
	want := content(t, data)
	run := func(args ...string) map[string]string {
		out := filepath.Join(t.TempDir(), "out")
		must(t, append([]string{"dataset", "import", "--progress", "none", "--out", out}, args...)...)
		return content(t, out)
	}
	var requests atomic.Int64
	server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" || requests.Add(1)%3 != 0 {
			return false
		}
		objectserver.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "a message")
		return true
	})
	assert.Equal(t, want, run("s3://rows/days/part-*.parquet"))
	web := server.URL + "/rows/days/"
	assert.Equal(t, want, run(web+"part-00000.parquet?token=x", filepath.Join(data, "part-00001.parquet")))
	server.SetBefore(nil)

	row := "1\t" + strings.Repeat("5\t", 13) + strings.TrimSuffix(strings.Repeat("68fd1e64\t", 26), "\t") + "\n"
	rows := strings.Repeat(row, 500)
	first, second := file(t, "day_0.tsv", rows), file(t, "day_0.tsv", rows)
	server.Put("rows/text/day_0.tsv", []byte(rows))
	assert.Equal(t, run(first), run(server.URL+"/rows/text/day_0.tsv"))
	assert.Equal(t, run(first, second), run("s3://rows/text/*.tsv", first))

	var changed atomic.Bool
	server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		// The copy is the only request that begins at the first byte and is longer than a piece of a header.
		if r.Header.Get("Range") == "bytes=0-"+strconv.Itoa(len(want["part-00000.parquet"])-1) && !changed.Swap(true) {
			server.Put("rows/days/part-00000.parquet", []byte(want["part-00001.parquet"]))
		}
		return false
	})
	out := filepath.Join(t.TempDir(), "out")
	code, _, said := millrace(t, "dataset", "import", "--progress", "none", "--out", out,
		web+"part-00000.parquet?secret")
	assert.Equal(t, exitFailed, code)
	assert.True(t, changed.Load())
	assert.Contains(t, said, "part-00000.parquet")
	assert.NotContains(t, said, "secret")
	assert.NoDirExists(t, out, "an import that fails leaves no folder")
}

// TestPlaceFromElsewhere: files behind URLs go to storage nodes under their base names.
func TestPlaceFromElsewhere(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "2")
	server := served(t, data)
	control := controlRun(t)
	nodesOf(t, control, 1)
	at := func(args ...string) string {
		return must(t, append(args, "--control", control, "--output", "json", "--progress", "none")...)
	}
	copies := decode[[]copyResult](t, at("dataset", "place", "s3://rows/days/part-*0.parquet",
		server.URL+"/rows/days/part-00001.parquet?token=secret"))
	require.Len(t, copies, 2)
	for _, k := range copies {
		assert.True(t, k.Done, k.Error)
		assert.NotContains(t, k.From, "secret")
	}
	copies = decode[[]copyResult](t, at("dataset", "place", data+"/part-00000.parquet", data+"/part-00001.parquet"))
	assert.Empty(t, copies, "they are the same partitions")
}

// TestJobsOverStores: no node holds the partitions; a worker was given them by a pattern, and tells the control plane.
// The job is the one over files of this machine.
func TestJobsOverStores(t *testing.T) {
	data := generate(t, "--rows", "2000", "--partitions", "3")
	server := served(t, data)
	control := controlRun(t)
	conf := worker.DefaultConfig()
	conf.Name, conf.Listen, conf.Control = "w0", []string{"127.0.0.1:0"}, []string{control}
	conf.Threads, conf.Memory, conf.Measure = 1, 256<<20, node.Duration(time.Millisecond)
	conf.Partitions = []string{"s3://rows/days/part-*.parquet"}
	conf.Rescan = node.Duration(50 * time.Millisecond)
	var far sourceFlags
	stores, err := far.stores(true)
	require.NoError(t, err)
	agent, err := worker.Start(context.Background(), conf, worker.Options{Stores: stores})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, agent.Close()) })
	listedNodes(t, control, func(nodes []nodeView) bool { return len(nodes) == 1 && nodes[0].Partitions == 3 })
	out := must(t, "train", "--control", control, "--pipeline", "rm1", "--batch", "100",
		"--trainer-rows-per-second", "1e6", "--measure", "1ms", "--progress", "none", "--output", "json")
	assert.Contains(t, out, `"rows": 2000`)

	// An object that is added is announced.
	more := content(t, generate(t, "--rows", "500", "--partitions", "1", "--seed", "9"))["part-00000.parquet"]
	server.Put("rows/days/part-00003.parquet", []byte(more))
	listedNodes(t, control, func(nodes []nodeView) bool { return len(nodes) == 1 && nodes[0].Partitions == 4 })
	out = must(t, "train", "--control", control, "--pipeline", "rm1", "--batch", "100",
		"--trainer-rows-per-second", "1e6", "--measure", "1ms", "--progress", "none", "--output", "json")
	assert.Contains(t, out, `"rows": 2500`)

	conf.Name = "w1"
	for _, partitions := range []string{"s3://rows/days/none*", data, "https://u:secret@host/x"} {
		conf.Partitions = []string{partitions}
		_, err = worker.Start(context.Background(), conf, worker.Options{Stores: stores})
		require.ErrorContains(t, err, "partitions: ")
		assert.NotContains(t, err.Error(), "secret")
	}
}
