package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
	vocabularies "github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// summaryDocument declares vocabularies of every order and rule: of single values, of lists, of a feature that is made
// from a dense one, and a joint one.
const summaryDocument = `name: summaries
batch: 50
label: {column: label}
sparse:
  - {columns: [cat_0], as: seen, ops: [positive_modulus: 700, vocabulary: {name: seen}]}
  - {columns: [list_0], as: tags, ops: [positive_modulus: 300, vocabulary: {name: tags}]}
  - {columns: [cat_0], as: joint_a, ops: [positive_modulus: 2000, vocabulary: {name: joint}]}
  - {columns: [list_0], as: joint_b, ops: [positive_modulus: 2000, vocabulary: {name: joint}]}
  - {columns: [cat_0], as: many, ops: [vocabulary: {name: many}]}
generated:
  - {columns: [int_0], as: bucket, ops: [fill_null: 0, bucketize: {borders: [10, 100, 500]}, vocabulary: {name: tags}]}
vocabularies:
  seen: {base: 3, null_id: 0, rare_id: 1, min_count: 3}
  tags: {order: count, min_count: 2, max_size: 200, unknown: drop}
  joint: {order: count_text, joint: true, base: 9, oov_buckets: 4}
  many: {}
`

// reducer is a process that makes the pass of a vocabulary, or without one that of the statistics of all columns.
type reducer struct {
	Control    []string
	Document   string
	Vocabulary string
	Out, Work  string
}

// clusterVocabulary is a pass over some partitions of a cluster.
type clusterVocabulary struct {
	vocabularies.Pass
	Partitions, Exclude []string
}

func (p *clusterVocabulary) Run(ctx context.Context, c *remote.Client) (*vocabularies.Report, error) {
	return p.Pass.Run(ctx, &remote.PassSource{Client: c, Partitions: p.Partitions, Exclude: p.Exclude})
}

func (r *reducer) run(ctx context.Context) error {
	c, err := remote.Dial(remote.Options{Control: r.Control, Patience: time.Minute, Logger: logger()})
	if err != nil {
		return err
	}
	if r.Vocabulary == "" {
		return errors.Join(r.summarize(ctx, c), c.Close())
	}
	spec, err := pipeline.Parse([]byte(r.Document))
	if err != nil {
		return errors.Join(err, c.Close())
	}
	pass := clusterVocabulary{Pass: vocabularies.Pass{Pipeline: spec, Name: r.Vocabulary, Path: r.Out,
		Options: passes.Options{Work: r.Work, Every: time.Nanosecond, QueueBytes: 40_000, Logger: logger()}}}
	pass.Progress = func(passes.Progress) { time.Sleep(3 * time.Millisecond) } // the test kills it on its way
	_, err = pass.Run(ctx, c)
	return errors.Join(err, c.Close())
}

// localVocabulary returns the bytes of a vocabulary and its sidecar, as one machine makes them of partitions.
func localVocabulary(t testing.TB, document, name, extend string, data map[string][]byte) []byte {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	pass := vocabularies.Pass{Pipeline: spec, Name: name, Path: filepath.Join(t.TempDir(), "here.vocab"),
		Extend: extend}
	_, err = pass.Run(t.Context(), &local.PassSource{Storage: openHere(t, data)})
	require.NoError(t, err)
	return vocabularyBytes(t, pass.Path)
}

// vocabularyBytes returns the bytes of a vocabulary's file and its sidecar.
func vocabularyBytes(t testing.TB, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	counts, err := os.ReadFile(path + vocabulary.CountsSuffix)
	require.NoError(t, err)
	return append(file, counts...)
}

// reduction returns a pass over the data of a cluster in a new work folder, which writes a part after every
// mini-batch.
func reduction(t testing.TB, document, name string) *clusterVocabulary {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	dir := t.TempDir()
	return &clusterVocabulary{Pass: vocabularies.Pass{Pipeline: spec, Name: name,
		Path: filepath.Join(dir, "there.vocab"), Options: passes.Options{Work: filepath.Join(dir, "work"),
			Every: time.Nanosecond, QueueBytes: 40_000, Logger: logger()}}}
}

// keptInWork returns how many parts a work folder has had, and how many mini-batches are in them without a gap.
func keptInWork(work string) (parts int, miniBatches uint64) {
	var d struct {
		Parts int           `json:"parts_written"`
		Token dataset.Token `json:"token"`
	}
	b, err := os.ReadFile(filepath.Join(work, "pass.json"))
	if err == nil {
		_ = json.Unmarshal(b, &d) // the file is written whole
	}
	return d.Parts, d.Token.Mark
}

// lastPart returns the number of the last part in a work folder.
func lastPart(work string) int {
	parts, _ := keptInWork(work)
	return parts
}

// startNodes starts n nodes, each with a drive, that hold the partitions, and replicas of them on the next node.
func startNodes(t testing.TB, at string, n int, data map[string][]byte) map[string]bool {
	t.Helper()
	parts := deal(data, n)
	nodes := map[string]bool{}
	for i := range parts {
		held := maps.Clone(parts[i])
		maps.Copy(held, parts[(i+1)%n])
		name := fmt.Sprint("n", i)
		runNode(t, nodeConfig(name, []string{at}, makeDrive(t, "mem", held)))
		nodes[name] = true
	}
	return nodes
}

// TestVocabulariesOfTheClustersData: one, two and three nodes with replicas make the bytes of one machine, in every
// order and under every rule, and leave no work folder.
func TestVocabulariesOfTheClustersData(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	want := map[string][]byte{}
	for _, name := range []string{"seen", "tags", "joint", "many"} {
		want[name] = localVocabulary(t, summaryDocument, name, "", data)
	}
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			_, _, c := someNodes(t, n, data)
			for _, name := range slices.Sorted(maps.Keys(want)) {
				pass := reduction(t, summaryDocument, name)
				var rows, seen int64
				pass.Started = func(all, taken int64) { rows = all - taken }
				pass.Progress = func(p passes.Progress) { seen += p.Rows }
				made, err := pass.Run(t.Context(), c)
				require.NoError(t, err, name)
				assert.Equal(t, want[name], vocabularyBytes(t, pass.Path), name)
				assert.EqualValues(t, 1500+1401+900+1049, made.Rows)
				assert.Equal(t, made.Rows, seen)
				assert.Equal(t, rows, seen)
				assert.Zero(t, made.Resumed)
				assert.Positive(t, made.ReceivedBytes)
				assert.NoDirExists(t, pass.Work)
				job, err := c.Get(t.Context(), made.JobName)
				require.NoError(t, err)
				awaitDone(t, c, job.Id)
				require.NoError(t, c.PutVocabulary(t.Context(), pass.Path))
				_, err = pass.Run(t.Context(), c)
				require.ErrorIs(t, err, os.ErrExist)
			}
		})
	}
}

// TestAVocabularyOfRowsThatPass: of a pipeline with a filter, whose other groups are checked before the pass, too. The
// pass is stopped on its way and goes on.
func TestAVocabularyOfRowsThatPass(t *testing.T) {
	const document = `name: filtered
batch: 50
label: {column: label}
dense:
  - {columns: [int_0], ops: [fill_null: 0, log: {add: 1}]}
sparse:
  - {columns: [cat_0], ops: [positive_modulus: 700, vocabulary: v]}
vocabularies: {v: {order: count}}
filter: {all: [{column: int_0, ge: 1}, {sampling: {key: row, rate: 0.7, salt: 3}}]}
`
	data := files(t, 700, 600, 500)
	want := localVocabulary(t, document, "v", "", data)
	_, _, c := someNodes(t, 2, data)
	pass := reduction(t, document, "v")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pass.Progress = func(passes.Progress) { cancel() }
	_, err := pass.Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, pass.Path)
	pass.Progress = nil
	made, err := pass.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Positive(t, made.Resumed)
	assert.Positive(t, made.Rows)
	assert.Less(t, made.Rows, int64(700+600+500))
	assert.Equal(t, want, vocabularyBytes(t, pass.Path))
}

// TestAVocabularyIsExtendedByTheClustersData: the next generation over new partitions alone.
func TestAVocabularyIsExtendedByTheClustersData(t *testing.T) {
	data := files(t, 700, 600, 500)
	old, fresh := maps.Clone(data), maps.Clone(data)
	delete(old, "part-00002.parquet")
	maps.DeleteFunc(fresh, func(name string, _ []byte) bool { return name != "part-00002.parquet" })
	_, _, c := someNodes(t, 2, data)
	for _, name := range []string{"seen", "joint"} {
		first := reduction(t, summaryDocument, name)
		first.Exclude = []string{"part-00002*"}
		_, err := first.Run(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, localVocabulary(t, summaryDocument, name, "", old), vocabularyBytes(t, first.Path))
		want := localVocabulary(t, summaryDocument, name, first.Path, fresh)
		more := reduction(t, summaryDocument, name)
		more.Extend, more.Path, more.Replace, more.Partitions = first.Path, first.Path, true, []string{"part-00002*"}
		_, err = more.Run(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, want, vocabularyBytes(t, more.Path))
	}
}

// killAPass kills the process of a pass again and again, and a node and the leader in between, until it ends by itself.
// kept is how much of the pass its work folder holds; each round waits until it has grown by a step.
func killAPass(t *testing.T, r reducer, data map[string][]byte, kept func(work string) int, step int) {
	t.Helper()
	member := controlOptions(t.TempDir())
	member.Listen = freePorts(t, 1)[0]
	member.Logger = nil
	leader := start(t, role{Member: &member})
	at := leader.said[0]
	parts := deal(data, 2)
	held := maps.Clone(parts[1])
	maps.Copy(held, parts[0])
	n0 := nodeConfig("n0", []string{at}, makeDrive(t, "file", parts[0]))
	n1 := nodeConfig("n1", []string{at}, makeDrive(t, "file", held))
	first := start(t, role{Node: &n0})
	start(t, role{Node: &n1})
	awaitPartitions(t, dial(t, at), map[string]bool{"n0": true, "n1": true}, len(data))
	r.Control = []string{at}
	kills := 0
	for round := 0; ; round++ {
		before := kept(r.Work)
		p := start(t, role{Reducer: &r})
		grows := func(steps int) {
			require.Eventually(t, func() bool {
				select {
				case <-p.done:
					return true
				default:
					return kept(r.Work) > before+steps*step
				}
			}, 2*time.Minute, time.Millisecond)
		}
		grows(1)
		switch round { // it goes on without its node or its leader
		case 1:
			first.kill()
			first = start(t, role{Node: &n0})
			grows(2)
		case 2:
			leader.kill()
			leader = start(t, role{Member: &member})
			grows(2)
		}
		if round < 8 {
			p.kill()
		}
		<-p.done
		if p.err == nil {
			break
		}
		kills++
		require.NoFileExists(t, r.Out)
	}
	assert.Greater(t, kills, 3)
	assert.NoDirExists(t, r.Work)
}

// TestAKilledReducer checks that a pass that was killed many times makes the bytes of one machine.
func TestAKilledReducer(t *testing.T) {
	data := files(t, 3500, 3401, 1900, 2049)
	dir := t.TempDir()
	r := reducer{Document: summaryDocument, Vocabulary: "many", Out: filepath.Join(dir, "out.vocab"),
		Work: filepath.Join(dir, "work")}
	killAPass(t, r, data, lastPart, 3)
	assert.Equal(t, localVocabulary(t, summaryDocument, "many", "", data), vocabularyBytes(t, r.Out))
}

// TestANodeThatLiesToAReducer: a node flips bits of its mini-batches; the other one's replicas are used.
func TestANodeThatLiesToAReducer(t *testing.T) {
	data := files(t, 1500, 1401)
	want := localVocabulary(t, summaryDocument, "joint", "", data)
	s := startControl(t, controlOptions(t.TempDir()))
	crooked := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data))
	crooked.Listen = []string{freePorts(t, 1)[0]}
	crooked.Advertise = []string{liar(t, "http://"+crooked.Listen[0], func(r *http.Response) error {
		r.Body = &flippedBit{r.Body, int(r.ContentLength) - 10}
		return nil
	})}
	runNode(t, crooked)
	runNode(t, nodeConfig("n1", []string{s.URL()}, makeDrive(t, "mem", data)))
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	pass := reduction(t, summaryDocument, "joint")
	_, err := pass.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, want, vocabularyBytes(t, pass.Path))
	http.DefaultClient.CloseIdleConnections()
}

// errStop ends a pass in the middle.
var errStop = errors.New("stopped by the test")

// stopAfter makes a pass end when it has taken some rows.
func stopAfter(ctx context.Context, pass *clusterVocabulary, rows int64) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	pass.Progress = func(p passes.Progress) {
		if rows -= p.Rows; rows <= 0 {
			cancel(errStop)
		}
	}
	return ctx, func() { cancel(nil) }
}

// TestAWorkFolderIsOfOnePass: a folder is refused by a pass with other rules, another pipeline or choice of partitions,
// by a second process, and by the same pass over other data; the pass that began it goes on.
func TestAWorkFolderIsOfOnePass(t *testing.T) {
	data := files(t, 1500, 1401)
	want := localVocabulary(t, summaryDocument, "seen", "", data)
	s, nodes, c := someNodes(t, 2, data)
	pass := reduction(t, summaryDocument, "seen")
	ctx, cancel := stopAfter(t.Context(), pass, 1000)
	defer cancel()
	_, err := pass.Run(ctx, c)
	require.ErrorIs(t, err, errStop)
	require.Positive(t, lastPart(pass.Work))

	for what, change := range map[string]func(p *clusterVocabulary){
		"set of rules": func(p *clusterVocabulary) {
			p.Pipeline = reduction(t, strings.Replace(summaryDocument, "min_count: 3", "min_count: 4", 1), "seen").Pipeline
		},
		"pipeline before": func(p *clusterVocabulary) {
			p.Pipeline = reduction(t, strings.Replace(summaryDocument, "modulus: 700", "modulus: 701", 1), "seen").Pipeline
		},
		"vocabulary (seen": func(p *clusterVocabulary) { p.Name = "joint" },
		"choice of":        func(p *clusterVocabulary) { p.Partitions = []string{"part-00000*"} },
		"leave out":        func(p *clusterVocabulary) { p.Exclude = []string{"part-00000*"} },
	} {
		other := *pass
		change(&other)
		_, err := other.Run(t.Context(), c)
		var refused *passes.OtherPassError
		require.ErrorAs(t, err, &refused, what)
		assert.ErrorContains(t, err, what)
	}

	begun, second := false, error(nil)
	pass.Started = func(int64, int64) {
		begun = true
		other := *pass
		other.Started, other.Progress = nil, nil
		_, second = other.Run(t.Context(), c)
	}
	ctx, cancel = stopAfter(t.Context(), pass, 200)
	defer cancel()
	_, err = pass.Run(ctx, c)
	require.ErrorIs(t, err, errStop)
	require.True(t, begun)
	require.ErrorIs(t, second, passes.ErrInUse)
	pass.Started = nil

	more := startNode(t, nodeConfig("n9", []string{s.URL()}, makeDrive(t, "mem", map[string][]byte{
		"part-00009.parquet": files(t, 300)["part-00000.parquet"]})), node.Options{})
	nodes["n9"] = true
	awaitPartitions(t, c, nodes, len(data)+1)
	_, err = pass.Run(t.Context(), c)
	require.ErrorIs(t, err, dataset.ErrOtherJob)
	require.ErrorContains(t, err, pass.Work)
	require.NoError(t, more.Close())
	_, err = c.Drain(t.Context(), "n9", true) // it is gone for good
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pass.Progress = nil
		made, err := pass.Run(t.Context(), c)
		return err == nil && assert.GreaterOrEqual(t, made.Resumed, int64(1200))
	}, time.Minute, 100*time.Millisecond)
	assert.Equal(t, want, vocabularyBytes(t, pass.Path))
}

// TestAReducerWithoutRoom: a bound of the work folder that the parts do not fit is a typed error from both sides, and
// the pass goes on with a larger bound.
func TestAReducerWithoutRoom(t *testing.T) {
	data := files(t, 1500, 1401)
	want := localVocabulary(t, summaryDocument, "many", "", data)
	_, _, c := someNodes(t, 1, data)
	pass := reduction(t, summaryDocument, "many")
	var room *passes.RoomError
	pass.Disk = 1 << 16
	_, err := pass.Run(t.Context(), c)
	require.ErrorAs(t, err, &room, "the data set may have more keys than this")
	assert.Zero(t, lastPart(pass.Work))
	pass.Disk = 2 * 24 * 2901 // what is wanted beforehand; the parts may take three eighths of it
	_, err = pass.Run(t.Context(), c)
	require.ErrorAs(t, err, &room)
	assert.True(t, room.Bound)
	taken := lastPart(pass.Work)
	require.Positive(t, taken)
	pass.Disk = 4 * 24 * 2901
	made, err := pass.Run(t.Context(), c)
	require.NoError(t, err)
	assert.Positive(t, made.Resumed)
	assert.Less(t, made.Resumed, made.Rows)
	assert.True(t, bytes.Equal(want, vocabularyBytes(t, pass.Path)))
}
