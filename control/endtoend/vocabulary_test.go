package endtoend

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/sdk/pipeline"
	vocabularies "github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// lookupDocument looks two columns up, one of them a list.
const lookupDocument = `name: lookups
batch: 50
label: {column: label}
sparse:
  - columns: [cat_0]
    ops: [positive_modulus: 700, vocabulary: {name: items}]
  - columns: [list_0]
    ops: [positive_modulus: 300, vocabulary: {name: tags}]
vocabularies:
  items: {base: 3, null_id: 0, rare_id: 1}
  tags: {order: count, min_count: 2, unknown: drop}
`

// buildVocabularies builds the vocabularies of lookupDocument on one machine, and returns their paths and the pipeline
// that is bound to them.
func buildVocabularies(
	t testing.TB, document string, data map[string][]byte, names ...string,
) (paths map[string]string, bound *pipeline.Spec) {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	m := openHere(t, data)
	paths = map[string]string{}
	for _, name := range names {
		pass := vocabularies.Pass{Pipeline: spec, Name: name, Path: filepath.Join(t.TempDir(), name+".vocab")}
		_, err := pass.Run(t.Context(), &local.PassSource{Storage: m})
		require.NoError(t, err)
		paths[name] = pass.Path
	}
	bound, err = local.BindVocabularies(spec, paths)
	require.NoError(t, err)
	return paths, bound
}

// looksUp are the files of a job that uses vocabularies, whose paths are by name.
func looksUp(paths map[string]string) remote.Files { return remote.Files{Vocabularies: paths} }

// takeAll takes all mini-batches of a job.
func takeAll(t testing.TB, c *remote.Client, id string, each func(n int)) *result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	j, err := c.Attach(ctx, id, remote.AttachOptions{QueueBytes: 40_000, Deadline: 5 * time.Second})
	require.NoError(t, err)
	got := newResult()
	for mb, err := range j.MiniBatches(ctx) {
		require.NoError(t, err)
		got.add(t, mb)
		if each != nil {
			each(len(got.sums))
		}
	}
	require.NoError(t, j.Close())
	return got
}

// TestVocabulariesInTheCluster: nodes with drives and with CPUs, and a worker without data, fetch a job's vocabularies
// from the control plane, and make the mini-batches of one machine. A node that is replaced in the middle by one with
// an empty disk fetches them again.
func TestVocabulariesInTheCluster(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	paths, bound := buildVocabularies(t, lookupDocument, data, "items", "tags")
	want := specOnOneMachine(t, bound, data, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	parts := deal(data, 2)
	cpu := nodeConfig("n1", []string{s.URL()}, makeDrive(t, "mem", parts[1]))
	cpu.Drives[0].Engine = "cpu"
	runNode(t, cpu)
	// Its tables fit beside its job's streams.
	replaced := nodeConfig("n0", []string{s.URL()}, makeDriveOf(t, "mem", "size=8MiB&slm=1280MiB", parts[0], nil))
	a := startNode(t, replaced, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	w := startWorker(t, workerConfig("w0", []string{s.URL()}))
	defer func() { assert.NoError(t, w.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	awaitReady(t, c, "w0")

	spec := &apiv1.JobSpec{Name: "lookups", Pipeline: []byte(lookupDocument), Plan: plan(), Epochs: 1}
	_, err := c.Submit(t.Context(), spec)
	require.ErrorContains(t, err, "--vocabulary items=FILE")
	_, err = c.SubmitWith(t.Context(), "", spec, looksUp(map[string]string{"others": paths["items"]}))
	require.ErrorContains(t, err, "others")
	_, err = c.SubmitWith(t.Context(), "", spec, looksUp(map[string]string{"items": paths["tags"], "tags": paths["tags"]}))
	require.ErrorContains(t, err, "the pipeline says")

	st, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	again, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	assert.Equal(t, st.Id, again.Id, "the same submission is the same job")
	// The drive of n0 looks items up; n1 has none that computes, and keys are never dropped in a drive.
	require.Eventually(t, func() bool {
		st, err := c.Get(t.Context(), st.Id)
		return err == nil && len(st.Lookups) == 2 && st.Lookups[0].Key == "cat_0" && st.Lookups[0].InDrive == 1 &&
			st.Lookups[0].OnNode > 0 && st.Lookups[1].Key == "list_0" && st.Lookups[1].InDrive == 0 &&
			st.Lookups[1].OnNode > 1
	}, time.Minute, 20*time.Millisecond)
	got := takeAll(t, c, st.Id, func(n int) {
		if n != 20 {
			return
		}
		require.NoError(t, a.Close())
		a = startNode(t, replaced, node.Options{})
	})
	check(t, want, got, false)
	st = awaitDone(t, c, st.Id)
	require.Len(t, st.Spec.Vocabularies, 2)
}

// TestAnotherVocabularyIsAnotherJob: the digest of a job covers those of its vocabularies.
func TestAnotherVocabularyIsAnotherJob(t *testing.T) {
	data := files(t, 600)
	paths, _ := buildVocabularies(t, lookupDocument, data, "items", "tags")
	others, _ := buildVocabularies(t, lookupDocument, files(t, 300), "items")
	_, c := oneNode(t, data)
	spec := &apiv1.JobSpec{Pipeline: []byte(lookupDocument), Plan: plan()}
	first, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	second, err := c.SubmitWith(t.Context(), "", &apiv1.JobSpec{Pipeline: []byte(lookupDocument), Plan: plan()},
		looksUp(map[string]string{"items": others["items"], "tags": paths["tags"]}))
	require.NoError(t, err)
	assert.NotEqual(t, first.Digest, second.Digest)
}

// TestAnIDThatAVocabularyLacks: the job fails, and says which partition, row, column and key it was.
func TestAnIDThatAVocabularyLacks(t *testing.T) {
	data := files(t, 600, 500)
	document := strings.Replace(lookupDocument, ", rare_id: 1", ", unknown: error", 1)
	paths, _ := buildVocabularies(t, document, files(t, 600), "items")
	tags, _ := buildVocabularies(t, document, data, "tags")
	paths["tags"] = tags["tags"]
	_, c := oneNode(t, data)
	st, err := c.SubmitWith(t.Context(), "", &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan()}, looksUp(paths))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, err := c.Attach(ctx, st.Id, remote.AttachOptions{})
	if err == nil { // the job may fail while P is measured
		for _, err2 := range j.MiniBatches(ctx) {
			err = err2
		}
		_ = j.Close() // the job has failed
	}
	require.Error(t, err)
	require.Eventually(t, func() bool {
		st, err = c.Get(ctx, st.Id)
		return err == nil && strings.HasPrefix(st.State, "failed")
	}, time.Minute, 20*time.Millisecond)
	assert.Regexp(t, `part-00001.parquet: row \d+: column "cat_0": the vocabulary lacks the key \d+`, st.State)
}

// member is a proxy before a member of the control plane that changes the answers of ReadVocabulary.
func member(t *testing.T, to string, change func(*http.Response)) string {
	target, err := url.Parse(to)
	require.NoError(t, err)
	back := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Del("Connect-Accept-Encoding")
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	back.ModifyResponse = func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/ReadVocabulary") {
			change(r)
		}
		return nil
	}
	s := httptest.NewServer(back)
	t.Cleanup(s.Close)
	return s.URL
}

// TestAMemberThatSendsOtherBytes: the node takes nothing whose SHA-256 is not the digest. The job fails if no other
// member sends the file, and says so; a node that reaches the member itself prepares the job.
func TestAMemberThatSendsOtherBytes(t *testing.T) {
	data := files(t, 600)
	paths, _ := buildVocabularies(t, lookupDocument, data, "items", "tags")
	s := startControl(t, controlOptions(t.TempDir()))
	bad := member(t, s.URL(), func(r *http.Response) {
		raw, err := io.ReadAll(r.Body)
		if assert.NoError(t, err) {
			raw[len(raw)/2] ^= 1
			r.Body = io.NopCloser(bytes.NewReader(raw))
		}
	})
	runNode(t, nodeConfig("n0", []string{bad}, makeDrive(t, "mem", data)))
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	spec := &apiv1.JobSpec{Pipeline: []byte(lookupDocument), Plan: plan()}
	st, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		st, err = c.Get(t.Context(), st.Id)
		return err == nil && strings.Contains(st.State, "vocabulary")
	}, time.Minute, 20*time.Millisecond)
	assert.Contains(t, st.State, "no member of the control plane sent it")
	assert.Contains(t, st.State, "bytes are not those of the file's digest")
}

// TestVocabulariesSurviveTheLeader: the members share the files, so that the leader's death and the loss of its disk
// keep no node that joins later from a job.
func TestVocabulariesSurviveTheLeader(t *testing.T) {
	data := files(t, 1500, 1401)
	paths, bound := buildVocabularies(t, lookupDocument, data, "items", "tags")
	want := specOnOneMachine(t, bound, data, 1)
	members, urls := startMembers(t, 3)
	c := dial(t, urls...)
	parts := deal(data, 2)
	runNode(t, nodeConfig("n0", urls, makeDrive(t, "mem", parts[0])))
	late := nodeConfig("n1", urls, makeDrive(t, "mem", parts[1]))
	b := startNode(t, late, node.Options{})
	defer func() { assert.NoError(t, b.Close()) }()
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	spec := &apiv1.JobSpec{Pipeline: []byte(lookupDocument), Plan: plan()}
	st, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for _, m := range members {
			files, err := filepath.Glob(filepath.Join(m.role.Member.Data, "vocabularies", "*"))
			if err != nil || len(files) != 2 || strings.Contains(strings.Join(files, " "), "partial") {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "every member gets the files")
	got := takeAll(t, c, st.Id, func(n int) {
		if n != 10 {
			return
		}
		require.NoError(t, b.Close())
		members[leaderOf(t, c, members)].kill()
		b = startNode(t, late, node.Options{})
	})
	check(t, want, got, false)
}

// TestAVocabularyThatNoMemberHas: after a restart without the files the job says what it waits for, and goes on when
// the submitter puts them again.
func TestAVocabularyThatNoMemberHas(t *testing.T) {
	data := files(t, 800)
	paths, bound := buildVocabularies(t, lookupDocument, data, "items", "tags")
	want := specOnOneMachine(t, bound, data, 1)
	o := controlOptions(t.TempDir())
	o.DeadAfter = 20 * time.Second // the job waits for 12 times as long
	s := startControl(t, o)
	first := startNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "file", data)), node.Options{})
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	spec := &apiv1.JobSpec{Name: "lookups", Pipeline: []byte(lookupDocument), Plan: plan()}
	st, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	awaitJob(t.Context(), t, c, st.Id, "running", func(st *apiv1.JobStatus) bool { return st.State == "running" })
	require.NoError(t, first.Close())
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(o.Data, "vocabularies")))

	s2, err := control.Start(t.Context(), o)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s2.Close()) }()
	require.NoError(t, s2.WaitReady(t.Context()))
	c = dial(t, s2.URL())
	runNode(t, nodeConfig("n0", []string{s2.URL()}, makeDrive(t, "mem", data)))
	require.Eventually(t, func() bool {
		st, err := c.Get(t.Context(), st.Id)
		return err == nil && strings.Contains(st.WaitsFor, "no member of the control plane sent it")
	}, time.Minute, 20*time.Millisecond)
	again, err := c.SubmitWith(t.Context(), "", spec, looksUp(paths))
	require.NoError(t, err)
	require.Equal(t, st.Id, again.Id)
	check(t, want, takeAll(t, c, st.Id, nil), false)
}
