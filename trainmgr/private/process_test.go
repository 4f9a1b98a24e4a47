package private

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// localFrames returns the frames of a job of trainmgr/local over the same files, by name.
func localFrames(t *testing.T, o *Open) (digest string, frames map[tensor.Name][]byte) {
	t.Helper()
	config, err := o.localConfig(t.Context(), source.ParseLocations(o.Files...), partitionfile.Resolver{})
	require.NoError(t, err)
	config.DriveOptions.Engine = host.EngineCPU
	m, err := local.Open(t.Context(), config)
	require.NoError(t, err)
	options, err := o.jobOptions()
	require.NoError(t, err)
	options.QueueBytes = 0
	job, err := trainmgr.Submit(t.Context(), m, options)
	require.NoError(t, err)
	frames = map[tensor.Name][]byte{}
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		frames[mb.Name] = bytesOf(t, mb)
	}
	digest = job.Digest().String()
	require.NoError(t, job.Close())
	require.NoError(t, m.Close())
	return digest, frames
}

func bytesOf(t *testing.T, mb *tensor.MiniBatch) []byte {
	t.Helper()
	f, err := tensor.EncodeFrame(mb)
	require.NoError(t, err)
	b := append([]byte(nil), f.Header...)
	for _, d := range f.Data {
		b = append(b, d...)
	}
	return b
}

func TestMiniBatchesAreThoseOfALocalJob(t *testing.T) {
	for _, order := range []string{"", "deterministic"} {
		for _, threads := range []int{0, 3} {
			t.Run(fmt.Sprintf("order %q, %d threads", order, threads), func(t *testing.T) {
				before := memoryFiles(t)
				open := &Open{
					Version: Version, Source: Source{Files: []string{writeFiles(t, 250, 130, 90)}, Pipeline: features},
					Plan: Plan{Epochs: 2, Order: order, SplitBatches: 3, Seed: 5}, Limits: Limits{Threads: threads},
				}
				digest, want := localFrames(t, open)
				tr, ended := start(t, Options{})
				tr.send(open)
				opened := must[*Opened](tr)
				assert.Equal(t, digest, opened.Digest)
				assert.Equal(t, 20, opened.Batch)
				assert.EqualValues(t, 2, opened.Epochs)
				assert.EqualValues(t, len(want), 2*opened.MiniBatches)
				assert.Equal(t, os.Getpid(), opened.PID)
				if threads > 0 {
					assert.Equal(t, threads, opened.Threads)
				} else {
					assert.Equal(t, max(runtime.GOMAXPROCS(0)-1, 1), opened.Threads)
				}
				for i := range len(want) {
					m, mb := tr.take()
					require.Equal(t, want[mb.Name], bytesOf(t, mb))
					delete(want, mb.Name)
					if order == "deterministic" {
						require.EqualValues(t, uint64(i)%opened.MiniBatches, m.Number)
					}
				}
				assert.Empty(t, want)
				tr.send(&Leave{})
				require.NoError(t, awaitEnd(t, ended))
				tr.close()
				assert.Equal(t, before, memoryFiles(t), "shared memory is left")
			})
		}
	}
}

func TestASeekGoesToATokensPlace(t *testing.T) {
	open := &Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 200)}, Pipeline: features},
		Plan: Plan{Order: "deterministic"},
	}
	tr, ended := start(t, Options{})
	tr.send(open)
	opened := must[*Opened](tr)
	beginning, err := parseToken(opened.Token)
	require.NoError(t, err)
	for range 3 {
		tr.take()
	}
	at := *beginning
	at.Mark = 7
	text, err := at.MarshalText()
	require.NoError(t, err)
	tr.send(&Seek{Generation: 1, Token: string(text)})
	for { // mini-batches of the position before may still come
		m, err := tr.next()
		require.NoError(t, err)
		if sought, ok := m.(*Sought); ok {
			assert.Equal(t, string(text), sought.Token)
			break
		}
		tr.send(&Free{Buffer: m.(*MiniBatch).Buffer})
	}
	for number := uint64(7); number < 10; {
		m, _ := tr.take()
		if m.Generation == 0 {
			continue
		}
		require.Equal(t, number, m.Number)
		number++
	}
	// A token of another job is refused, and the session goes on.
	at.Job[0] ^= 1
	text, err = at.MarshalText()
	require.NoError(t, err)
	tr.send(&Seek{Generation: 2, Token: string(text)})
	refused := must[*Failed](tr)
	assert.Equal(t, CodeOtherJob, refused.Code)
	assert.Equal(t, 2, refused.Generation)
	tr.send(&Seek{Generation: 2})
	require.Equal(t, opened.Token, must[*Sought](tr).Token)
	m, _ := tr.take()
	assert.Equal(t, 2, m.Generation)
	assert.Zero(t, m.Number)
	require.NoError(t, tr.conn.Close())
	assert.NoError(t, awaitEnd(t, ended))
}

func TestATrainerThatGivesNothingBackStopsTheEngines(t *testing.T) {
	open := &Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 2000)}, Pipeline: features},
		Limits: Limits{QueueBytes: 1},
	}
	tr, ended := start(t, Options{})
	tr.send(open)
	must[*Opened](tr)
	for range leastBuffers {
		must[*MiniBatch](tr)
	}
	assert.Len(t, tr.buffers, leastBuffers)
	assert.EqualValues(t, 1, tr.limit)
	tr.send(&Seek{Generation: 1}) // a message that is answered although no buffer is free
	must[*Sought](tr)
	require.NoError(t, tr.conn.Close())
	assert.NoError(t, awaitEnd(t, ended))
}

func TestFailuresNameThePlace(t *testing.T) {
	files := writeFiles(t, 300, 100)
	second := files[:len(files)-len("*.parquet")] + "1.parquet"
	b, err := os.ReadFile(second)
	require.NoError(t, err)
	tr, ended := start(t, Options{})
	for i := 4; i < len(b)/2; i++ { // pages, not the footer
		b[i] ^= 0x5a
	}
	require.NoError(t, os.WriteFile(second, b, 0o644))
	tr.send(&Open{
		Version: Version, Source: Source{Files: []string{files}, Pipeline: features},
		Plan: Plan{Shuffle: "none", Order: "deterministic"},
	})
	must[*Opened](tr)
	for {
		m, err := tr.next()
		require.NoError(t, err)
		if failed, ok := m.(*Failed); ok {
			assert.Equal(t, CodeData, failed.Code)
			assert.Equal(t, "day_1.parquet", failed.File)
			assert.NotEmpty(t, failed.Column)
			assert.NotNil(t, failed.RowGroup)
			assert.Contains(t, failed.Message, "day_1.parquet")
			break
		}
		tr.send(&Free{Buffer: m.(*MiniBatch).Buffer})
	}
	require.NoError(t, tr.conn.Close())
	_ = awaitEnd(t, ended)
}

func TestWhatCannotBeOpened(t *testing.T) {
	files := []string{writeFiles(t, 50)}
	whole := Source{Files: files, Pipeline: features}
	named := func(name string) Open { return Open{Source: Source{Files: []string{name}, Pipeline: features}} }
	made := func(pipeline string) Open { return Open{Source: Source{Files: files, Pipeline: pipeline}} }
	for name, c := range map[string]struct {
		open Open
		code string
		says string
	}{
		"no file":                  {named("/nowhere/x.parquet"), CodeFiles, "/nowhere/x.parquet"},
		"no match":                 {named("/nowhere/x_*.parquet"), CodeFiles, "/nowhere/x_*.parquet matches no file"},
		"a URI where none is read": {named("https://h/x.parquet"), CodeFiles, "only files of this machine are read here"},
		"no name":                  {Open{Source: Source{Pipeline: features}}, CodeOptions, "no files"},
		"no pipeline":              {Open{Source: Source{Files: files}}, CodePipeline, "pipeline"},
		"no such pipeline":         {made("rm11"), CodePipeline, `did you mean "rm1"?`},
		"a wrong pipeline":         {made(features + "dens: 1\n"), CodePipeline, "line "},
		"no such column":           {made("name: x\nbatch: 2\nlabel: {column: lable}\n"), CodePipeline, "lable"},
		"a wrong shuffle":          {Open{Source: whole, Plan: Plan{Shuffle: "all"}}, CodeOptions, "shuffle"},
		"a wrong split": {
			Open{Source: Source{Files: files, Pipeline: features, Split: "test:0.9"}}, CodeOptions, `the part "test"`,
		},
		"a split by no column": {
			Open{Source: Source{Files: files, Pipeline: features, Split: "train:0.9:7:none"}}, CodePipeline,
			`"none" is not in the dataset`,
		},
		"a wrong order": {Open{Source: whole, Plan: Plan{Order: "any"}}, CodeOptions, "order"},
		"a wrong format": {
			Open{Source: Source{Files: files, Pipeline: features, InputFormat: "csv"}}, CodeOptions, "csv",
		},
		"a label of Parquet files": {
			Open{Source: Source{Files: files, Pipeline: features, Label: "absent"}}, CodeOptions,
			`label "absent" is for criteo`,
		},
		"malformed Parquet files": {
			Open{Source: Source{Files: files, Pipeline: features, Malformed: "drop"}}, CodeOptions,
			"for criteo-tsv rows",
		},
		"a tail that is all": {
			Open{Source: whole, Plan: Plan{Batch: 51, Tail: "drop"}}, CodeOptions, "leaves out all 50 rows",
		},
		"a boundary that no plan has": {
			Open{Source: whole, Plan: Plan{Boundary: "file"}}, CodeOptions, `boundary "file", want one of [partition none]`,
		},
		"a window that is not mixed": {Open{Source: whole, Plan: Plan{Window: 2}}, CodeOptions, "for shuffle rows"},
		"a wrong rank": {
			Open{Source: whole, Share: Share{Rank: 2, Ranks: 2}}, CodeOptions, "rank 2 of 2",
		},
		"a wrong token":   {Open{Source: whole, Token: "x"}, CodeToken, "token"},
		"another version": {Open{Version: 9, Source: whole}, CodeVersion, "version 9"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.open.Version == 0 {
				c.open.Version = Version
			}
			tr, ended := start(t, Options{})
			tr.send(&c.open)
			failed := must[*Failed](tr)
			assert.Equal(t, c.code, failed.Code, failed.Message)
			assert.Contains(t, failed.Message, c.says)
			if c.code == CodeFiles {
				assert.NotEmpty(t, failed.File)
			}
			if c.code == CodePipeline && strings.Contains(c.open.Pipeline, ":") {
				require.NotEmpty(t, failed.Problems)
				assert.NotEmpty(t, failed.Problems[0].Message)
			}
			require.NoError(t, tr.conn.Close())
			_ = awaitEnd(t, ended)
		})
	}
}

// Files that are named by URIs give the job that the same files of this machine give.
func TestFilesOfAWebServer(t *testing.T) {
	pattern := writeFiles(t, 300, 100)
	folder := http.FileServer(http.Dir(filepath.Dir(pattern)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		folder.ServeHTTP(w, r)
	}))
	defer server.Close()
	here := Open{
		Version: Version, Source: Source{Files: []string{pattern}, Pipeline: features},
		Plan: Plan{Shuffle: "none", Order: "deterministic"},
	}
	digest, frames := localFrames(t, &here)
	far := here
	far.Files = []string{server.URL + "/day_0.parquet", server.URL + "/day_1.parquet"}
	asked := 0
	tr, ended := start(t, Options{Sources: func(files []source.Location) (host.Sources, error) {
		asked++
		assert.Equal(t, source.ParseLocations(far.Files...), files)
		cache, err := source.NewCache(source.Options{})
		web := source.NewWeb(source.NewTransport(nil))
		return host.Sources{Opener: &source.Stores{Web: web}, Cache: cache}, err
	}})
	tr.send(&far)
	opened := must[*Opened](tr)
	assert.Equal(t, digest, opened.Digest)
	for range frames {
		_, mb := tr.take()
		assert.Equal(t, frames[mb.Name], bytesOf(t, mb))
	}
	assert.Equal(t, 1, asked)
	tr.close()
	_ = awaitEnd(t, ended)
}

// connectRank connects another local rank.
func connectRank(t *testing.T, name string) *trainer {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: "@" + name})
	require.NoError(t, err)
	return newTrainer(t, conn)
}

func TestLocalRanksShareTheProcess(t *testing.T) {
	const ranks = 3
	name := fmt.Sprintf("millrace-test-%d-%s", os.Getpid(), t.Name())
	open := Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 250, 130, 90)}, Pipeline: features},
		Plan: Plan{Epochs: 2, SplitBatches: 3}, Share: Share{Ranks: ranks, LocalRanks: ranks, RankTail: "keep"},
	}
	whole := open
	whole.Ranks, whole.LocalRanks = 0, 0
	digest, want := localFrames(t, &whole)
	tr, ended := start(t, Options{})
	first := open
	first.Listen = name
	tr.send(&first)
	trainers := []*trainer{tr}
	for rank := 1; rank < ranks; rank++ {
		var other *trainer
		require.Eventually(t, func() bool { // until the first has opened the socket
			conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: "@" + name})
			if err == nil {
				other = newTrainer(t, conn)
			}
			return err == nil
		}, 10e9, 1e7)
		mine := open
		mine.Rank = rank
		if rank == 1 {
			// A request for another job, or for a rank that is connected, is refused; the other ranks go on waiting.
			stranger := mine
			stranger.Batch = 7
			odd := connectRank(t, name)
			odd.send(&stranger)
			assert.Equal(t, CodeRanks, must[*Failed](odd).Code)
			twin := open
			odd = connectRank(t, name)
			odd.send(&twin)
			refused := must[*Failed](odd)
			assert.Equal(t, CodeRanks, refused.Code)
			assert.Contains(t, refused.Message, "RANK")
		}
		other.send(&mine)
		trainers = append(trainers, other)
	}
	end := uint64(0)
	for _, tr := range trainers {
		opened := must[*Opened](tr)
		assert.Equal(t, digest, opened.Digest)
		assert.Equal(t, end, opened.From)
		end = opened.To
	}
	for rank, tr := range trainers {
		if rank == 1 { // the starter has left by now: the others are served to their end
			trainers[0].send(&Leave{})
			require.NoError(t, trainers[0].conn.Close())
		}
		share := localShare(rank, ranks, uint64(len(want)), end)
		for range share {
			_, mb := tr.take()
			require.Equal(t, want[mb.Name], bytesOf(t, mb))
			want[mb.Name] = nil
		}
	}
	for name, frame := range want {
		assert.Nil(t, frame, "%v came to nobody", name)
	}
	trainers[1].send(&Leave{})
	require.NoError(t, trainers[2].conn.Close())
	require.NoError(t, awaitEnd(t, ended))
}

// localShare returns how many mini-batches of two epochs a rank gets.
func localShare(rank, ranks int, _, total uint64) int {
	n := total / uint64(ranks)
	if uint64(rank) < total%uint64(ranks) {
		n++
	}
	return int(2 * n)
}

func TestTheEndOfTheStarterEndsEveryRank(t *testing.T) {
	name := fmt.Sprintf("millrace-test-%d-%s", os.Getpid(), t.Name())
	open := Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 500)}, Pipeline: features},
		Share: Share{Ranks: 2, LocalRanks: 2},
	}
	tr, ended := start(t, Options{})
	first := open
	first.Listen = name
	tr.send(&first)
	var other *trainer
	require.Eventually(t, func() bool {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: "@" + name})
		if err == nil {
			other = newTrainer(t, conn)
		}
		return err == nil
	}, 10e9, 1e7)
	second := open
	second.Rank = 1
	other.send(&second)
	must[*Opened](tr)
	must[*Opened](other)
	require.NoError(t, tr.conn.Close()) // killed
	require.NoError(t, awaitEnd(t, ended))
	for {
		if _, err := other.next(); err != nil {
			return // the connection has ended
		}
	}
}

func TestRanksThatDoNotComeAreNamed(t *testing.T) {
	tr, ended := start(t, Options{})
	tr.send(&Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 50)}, Pipeline: features},
		Share: Share{
			Ranks: 4, LocalRanks: 4, Rank: 1, Patience: 1, Listen: fmt.Sprintf("millrace-test-%d-%s", os.Getpid(), t.Name()),
		},
	})
	failed := must[*Failed](tr)
	assert.Equal(t, CodeRanks, failed.Code)
	assert.Contains(t, failed.Message, "1 of 4 local ranks")
	assert.Contains(t, failed.Message, "[1]")
	require.Error(t, awaitEnd(t, ended))
}

func TestAStarterThatDiesWhileRanksAreAwaited(t *testing.T) {
	tr, ended := start(t, Options{})
	tr.send(&Open{
		Version: Version, Source: Source{Files: []string{writeFiles(t, 50)}, Pipeline: features},
		Share: Share{Ranks: 2, LocalRanks: 2, Listen: fmt.Sprintf("millrace-test-%d-%s", os.Getpid(), t.Name())},
	})
	require.NoError(t, tr.conn.Close())
	require.ErrorIs(t, awaitEnd(t, ended), errParentEnded)
}

func TestNamedPipelinesAreKnown(t *testing.T) {
	require.NotEmpty(t, pipeline.Names())
	for _, name := range pipeline.Names() {
		o := Open{Source: Source{Pipeline: name}}
		j, err := o.jobOptions()
		require.NoError(t, err)
		assert.NotNil(t, j.Pipeline)
	}
}
