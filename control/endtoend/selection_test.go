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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// filteredDocument lets about a sixth of the rows pass.
const filteredDocument = document + `filter:
  all:
    - {column: int_0, lt: 2500}
    - {not: {column: label, eq: 1}}
    - {sampling: {key: cat_0, rate: 0.9, salt: 3}}
`

// filteredHere makes, on one machine, the mini-batches of a pipeline with a filter, and returns the digest of the
// selection.
func filteredHere(
	t testing.TB, document string, data map[string][]byte, epochs int,
) (want *result, selected *local.SelectionReport) {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	return boundFilteredHere(t, spec, data, epochs)
}

// boundFilteredHere does what filteredHere does for a pipeline that may be bound to files.
func boundFilteredHere(
	t testing.TB, spec *pipeline.Spec, data map[string][]byte, epochs int,
) (want *result, selected *local.SelectionReport) {
	t.Helper()
	selections := &local.Selections{}
	bound, selected, err := selections.Bind(t.Context(), openHere(t, data), spec)
	require.NoError(t, err)
	return specOnOneMachine(t, bound, data, epochs), selected
}

// partsOf returns the parts that a node keeps in its state folder.
func partsOf(t testing.TB, folder string) []string {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(folder, "selections", "*.selection"))
	require.NoError(t, err)
	return parts
}

// TestSelectionsInTheCluster: a drive, a node's CPU over copies of some of the partitions, and a worker without data
// make the mini-batches of one machine, of two ranks and two epochs, with the same digests. A partition without
// passing rows gives none. Another job with the filter finds the parts that the nodes kept.
func TestSelectionsInTheCluster(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	var none bytes.Buffer
	empty := make([]row, 333)
	for i := range empty {
		empty[i].Label = 1
	}
	require.NoError(t, pq.Write(&none, empty))
	data["part-00001-none.parquet"] = none.Bytes()
	want, selected := filteredHere(t, filteredDocument, data, 2)
	s := startControl(t, controlOptions(t.TempDir()))
	parts := deal(data, 2)
	both := map[string][]byte{}
	for name, content := range parts[1] {
		both[name] = content
	}
	for _, name := range names(parts[0])[:1] { // a copy
		both[name] = parts[0][name]
	}
	states := []string{t.TempDir(), t.TempDir()}
	drive := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", parts[0]))
	drive.StateDir = states[0]
	runNode(t, drive)
	cpu := nodeConfig("n1", []string{s.URL()}, makeDrive(t, "mem", both))
	cpu.Drives[0].Engine, cpu.StateDir = "cpu", states[1]
	runNode(t, cpu)
	w := startWorker(t, workerConfig("w0", []string{s.URL()}))
	defer func() { assert.NoError(t, w.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	awaitReady(t, c, "w0")

	spec := &apiv1.JobSpec{Name: "filtered", Pipeline: []byte(filteredDocument), Plan: plan(), Epochs: 2, Ranks: 2,
		RankTail: "keep"}
	st, err := c.Submit(t.Context(), spec)
	require.NoError(t, err)
	got := twoRanks(t, c, st.Id)
	check(t, want, got, false)
	st = awaitDone(t, c, st.Id)
	assert.Equal(t, selected.Digest[:], st.Selection.Sha256)
	assert.Equal(t, selected.Rows, st.Selection.Rows)
	assert.Equal(t, selected.Passing, st.Selection.Passing)
	assert.Equal(t, selected.Passing, st.Rows)
	assert.Equal(t, uint32(len(data)), st.Selection.PartitionsDone)
	assert.Len(t, append(partsOf(t, states[0]), partsOf(t, states[1])...), len(data), "each was made once")

	placement := proto.CloneOf(spec)
	placement.Name, placement.Placement, placement.Ranks, placement.Epochs = "pool", "pool", 1, 1
	st, err = c.Submit(t.Context(), placement)
	require.NoError(t, err)
	once, _ := filteredHere(t, filteredDocument, data, 1)
	check(t, once, takeAll(t, c, st.Id, nil), false)
}

// twoRanks takes all mini-batches of a job with two ranks.
func twoRanks(t testing.TB, c *remote.Client, id string) *result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got := newResult()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for rank := range uint32(2) {
		wg.Go(func() {
			j, err := c.Attach(ctx, id, remote.AttachOptions{Rank: rank, QueueBytes: 40_000, Deadline: 5 * time.Second})
			if !assert.NoError(t, err) {
				return
			}
			for mb, err := range j.MiniBatches(ctx) {
				if !assert.NoError(t, err) {
					break
				}
				mu.Lock()
				got.sums[mb.Name] = sum(mb)
				mu.Unlock()
			}
			assert.NoError(t, j.Close())
		})
	}
	wg.Wait()
	return got
}

// TestSamplingAndAbsentColumns: a filter that reads nothing, and one that reads a column which some partitions lack.
func TestSamplingAndAbsentColumns(t *testing.T) {
	data := files(t, 700, 640)
	old := make([]olderRow, 430)
	for i := range old {
		old[i].Cat0 = int32(i * i)
	}
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, old))
	data["part-00000-old.parquet"] = b.Bytes()
	s := startControl(t, controlOptions(t.TempDir()))
	for name, held := range map[string]map[string][]byte{
		"n0": {"part-00000-old.parquet": b.Bytes()},
		"n1": {"part-00000.parquet": data["part-00000.parquet"], "part-00001.parquet": data["part-00001.parquet"]},
	} {
		runNode(t, nodeConfig(name, []string{s.URL()}, makeDrive(t, "mem", held)))
	}
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	for name, filter := range map[string]string{
		"sampled": "filter: {sampling: {key: row, rate: 0.25, salt: 7}}\n",
		"absent": "values: [{as: shown, from: int_0, absent: allow, ops: [fill_null: 1]}]\n" +
			"filter: {any: [{column: shown, eq: 1}, {column: cat_0, ge: 549755813888}]}\n",
	} {
		document := absentDocument + filter
		want, selected := filteredHere(t, document, data, 1)
		require.NotZero(t, selected.Passing, name)
		require.Less(t, selected.Passing, selected.Rows, name)
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: name, Pipeline: []byte(document), Plan: plan()})
		require.NoError(t, err)
		check(t, want, takeAll(t, c, st.Id, nil), false)
		st = awaitDone(t, c, st.Id)
		assert.Equal(t, selected.Digest[:], st.Selection.Sha256, name)
	}
	_, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: "lacks",
		Pipeline: []byte(absentDocument + "filter: {column: int_0, ge: 1}\n"), Plan: plan()})
	require.ErrorContains(t, err, "part-00000-old.parquet")
	_, err = c.Submit(t.Context(), &apiv1.JobSpec{Name: "unknown",
		Pipeline: []byte(absentDocument + "filter: {column: nothing, ge: 1}\n"), Plan: plan()})
	require.ErrorContains(t, err, "nothing")
}

// TestNoRowPasses: the job fails, and says why.
func TestNoRowPasses(t *testing.T) {
	data := files(t, 300)
	_, c := oneNode(t, data)
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: "nothing", Plan: plan(),
		Pipeline: []byte(document + "filter: {column: int_0, gt: 100000}\n")})
	require.NoError(t, err)
	_, err = c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.ErrorIs(t, err, remote.ErrEnded)
	st, err = c.Get(t.Context(), st.Id)
	require.NoError(t, err)
	assert.Contains(t, st.State, "no row of 300 passes the pipeline's filter")
}

// TestSelectionsSurviveDeaths: the leader is killed while rows are tested, then a node, which has copies elsewhere. The
// mini-batches are those of one machine, and rows that were selected are not tested again.
func TestSelectionsSurviveDeaths(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049, 700, 801)
	want, selected := filteredHere(t, filteredDocument, data, 1)
	members, urls := startMembers(t, 3)
	c := dial(t, urls...)
	wrap := func(f controller.Flash) controller.Flash { return slow{f} }
	first := startNode(t, nodeConfig("n0", urls, makeDriveOf(t, "mem", smallDrive, data, wrap)), node.Options{})
	defer func() { assert.NoError(t, first.Close()) }()
	runNode(t, nodeConfig("n1", urls, makeDriveOf(t, "mem", smallDrive, data, wrap)))
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: "filtered", Pipeline: []byte(filteredDocument), Plan: plan()})
	require.NoError(t, err)
	members[leaderOf(t, c, members)].kill()
	require.NoError(t, first.Close())
	check(t, want, takeAll(t, c, st.Id, nil), false)
	st = awaitDone(t, c, st.Id)
	assert.Equal(t, selected.Digest[:], st.Selection.Sha256)
}

// TestALostSelectionIsMadeAgain: after a restart without its files the leader makes the selection of a running job
// again, and nodes that join then are prepared.
func TestALostSelectionIsMadeAgain(t *testing.T) {
	data := files(t, 800, 700)
	want, _ := filteredHere(t, filteredDocument, data, 1)
	o := controlOptions(t.TempDir())
	o.DeadAfter = 20 * time.Second
	s := startControl(t, o)
	first := startNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "file", data)), node.Options{})
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Name: "filtered", Pipeline: []byte(filteredDocument), Plan: plan()})
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
	check(t, want, takeAll(t, c, st.Id, nil), false)
}

// TestANodeThatLiesAboutRows: a node that sends the part of fewer rows, or damaged bytes, is found out. A copy
// elsewhere is tested instead; without one, the job fails and names partition and node.
func TestANodeThatLiesAboutRows(t *testing.T) {
	data := files(t, 900, 1049)
	want, _ := filteredHere(t, filteredDocument, data, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	crooked := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data))
	crooked.Listen = []string{freePorts(t, 1)[0]}
	var lies atomic.Int32
	shorter := shorterPart(t)
	crooked.Advertise = []string{crookedNode(t, "http://"+crooked.Listen[0], func(r *http.Response) error {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		answer := &apiv1.SelectRowsResponse{}
		if err := proto.Unmarshal(b, answer); err != nil {
			return err
		}
		if len(answer.Piece) > 0 {
			lies.Add(1)
			answer.Piece, answer.Bytes = shorter, int64(len(shorter))
		}
		if b, err = proto.Marshal(answer); err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		return nil
	})}
	a := startNode(t, crooked, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	spec := &apiv1.JobSpec{Name: "alone", Pipeline: []byte(filteredDocument), Plan: plan()}
	st, err := c.Submit(t.Context(), spec)
	require.NoError(t, err)
	_, err = c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.ErrorIs(t, err, remote.ErrEnded)
	st, err = c.Get(t.Context(), st.Id)
	require.NoError(t, err)
	assert.Regexp(t, `^failed: make the selection of the filter: partition part-0000\d.parquet: node n0: drive d0: .*`+
		`the node sent no part of the selection: .*7 rows were tested`, st.State)

	runNode(t, nodeConfig("n1", []string{s.URL()}, makeDrive(t, "mem", data)))
	awaitPartitions(t, c, map[string]bool{"n1": true}, len(data))
	spec.Name = "with-a-copy"
	st, err = c.Submit(t.Context(), spec)
	require.NoError(t, err)
	check(t, want, takeAll(t, c, st.Id, nil), false)
	assert.Positive(t, lies.Load())
}

// crookedNode is a proxy before a node that changes the node's answers to SelectRows.
func crookedNode(t *testing.T, to string, change func(*http.Response) error) string {
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
		if r.StatusCode != http.StatusOK || !strings.HasSuffix(r.Request.URL.Path, "/SelectRows") {
			return nil
		}
		return change(r)
	}
	s := httptest.NewServer(back)
	t.Cleanup(s.Close)
	return s.URL
}

// shorterPart returns the part of a partition of seven rows.
func shorterPart(t testing.TB) []byte {
	spec, err := pipeline.Parse([]byte(document + "filter: {sampling: {key: row, rate: 0.5}}\n"))
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, make([]row, 7)))
	selections := &local.Selections{Dir: t.TempDir()}
	_, _, err = selections.Bind(t.Context(), openHere(t, map[string][]byte{"p.parquet": b.Bytes()}), spec)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(selections.Dir, "*.selection"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	return raw
}

// TestFilteredJobsResume: a job resumes from a token of another job over the same rows, and counts passing rows.
func TestFilteredJobsResume(t *testing.T) {
	data := files(t, 1500, 1401)
	want, _ := filteredHere(t, filteredDocument, data, 1)
	_, c := oneNode(t, data)
	spec := &apiv1.JobSpec{Name: "first", Pipeline: []byte(filteredDocument), Plan: plan()}
	st, err := c.Submit(t.Context(), spec)
	require.NoError(t, err)
	j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.NoError(t, err)
	got := newResult()
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		got.add(t, mb)
		require.NoError(t, j.Acknowledge(mb.Name))
		if len(got.sums) == 4 {
			break
		}
	}
	token, err := j.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, c.Cancel(t.Context(), st.Id))
	again := proto.CloneOf(spec)
	again.Name, again.Resume = "second", token
	st, err = c.Submit(t.Context(), again)
	require.NoError(t, err)
	for name, sum := range takeAll(t, c, st.Id, nil).sums {
		require.NotContains(t, got.sums, name)
		got.sums[name] = sum
	}
	check(t, want, got, false)

	other := proto.CloneOf(again)
	other.Name = "third"
	other.Pipeline = []byte(strings.Replace(filteredDocument, "salt: 3", "salt: 4", 1))
	st, err = c.Submit(t.Context(), other)
	require.NoError(t, err)
	_, err = c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.Error(t, err)
	st, err = c.Get(t.Context(), st.Id)
	require.NoError(t, err)
	assert.Contains(t, st.State, dataset.ErrOtherJob.Error(), "the token is of another selection")
}
