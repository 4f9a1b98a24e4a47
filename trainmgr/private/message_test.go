package private

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples is a message of every kind.
func samples() []Message {
	row, page, group := int64(5), int64(2), 1
	return []Message{
		&Open{
			Version: Version, Source: Source{Files: []string{"a", "b/*"}, Pipeline: "name: x\n"},
			Plan: Plan{Batch: 3, Seed: math.MaxUint64},
		},
		&Free{Buffer: 4}, &Seek{Generation: 1, Token: "t"}, &Leave{},
		&Opened{Version: Version, Digest: "d", Schema: []byte(`{"Label":true}`), Manifest: []byte(`{}`), To: 9},
		&Buffer{Buffer: 1, Bytes: 65536, Limit: 4}, &Retired{}, &MiniBatch{Generation: 2, Bytes: 77, Number: 1},
		&Sought{Generation: 3}, &Failed{Code: CodeData, Message: "m", File: "f", RowGroup: &group, Page: &page, Row: &row,
			Problems: []Problem{{Line: 1, At: 2, Message: "p"}}},
	}
}

func TestEveryMessageComesBack(t *testing.T) {
	var stream bytes.Buffer
	for _, m := range samples() {
		b, err := Encode(m)
		require.NoError(t, err)
		stream.Write(b)
	}
	for _, want := range samples() {
		got, err := Read(&stream)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := Read(&stream)
	require.ErrorIs(t, err, io.EOF)
}

// TestMembersOfAnOpen holds the members of an Open, in their order. The groups of its fields are not in the message.
func TestMembersOfAnOpen(t *testing.T) {
	b, err := json.Marshal(&Open{
		Version: 1,
		Source: Source{Files: []string{"f"}, Include: []string{"g"}, Exclude: []string{"h"}, InputFormat: "i",
			Label: "l", Malformed: "m", Sort: "q", Root: "u", Pipeline: "p", Split: "z",
			Vocabularies: map[string]string{"v": "w"}, Modules: map[string]string{"x": "y"}},
		Plan: Plan{
			Batch: 2, Boundary: "b", Tail: "t", Shuffle: "s", Seed: 3, SplitBatches: 4, Window: 5, Epochs: 6, Order: "o",
		},
		Limits: Limits{QueueBytes: 7, EngineBytes: 8, Threads: 9, TrainerCores: 10},
		Share:  Share{Rank: 11, Ranks: 12, RankTail: "r", LocalRanks: 13, Listen: "n", Patience: 14},
		Token:  "k",
	})
	require.NoError(t, err)
	assert.Equal(t,
		`{"version":1,"files":["f"],"include":["g"],"exclude":["h"],"input_format":"i","label":"l","malformed":"m",`+
			`"sort":"q","root":"u","pipeline":"p","split":"z","vocabularies":{"v":"w"},"modules":{"x":"y"},`+
			`"batch":2,"boundary":"b","tail":"t","shuffle":"s","seed":3,"split_batches":4,"window":5,"epochs":6,"order":"o",`+
			`"queue_bytes":7,"engine_bytes":8,"threads":9,"trainer_cores":10,`+
			`"rank":11,"ranks":12,"rank_tail":"r","local_ranks":13,"listen":"n","patience":14,"token":"k"}`, string(b))
}

func TestWhatIsNoMessage(t *testing.T) {
	framed := func(body string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
	}
	for name, b := range map[string][]byte{
		"a length that is cut":     {1, 0},
		"a body that is cut":       {5, 0, 0, 0, '{'},
		"a length beyond the most": binary.LittleEndian.AppendUint32(nil, MaxMessage+1),
		"the most, which is cut":   append(binary.LittleEndian.AppendUint32(nil, MaxMessage), '{'),
		"no JSON":                  framed("x"),
		"no object":                framed("[]"),
		"no kind":                  framed("{}"),
		"another kind":             framed(`{"kind":"close"}`),
		"another type":             framed(`{"kind":"free","buffer":"x"}`),
		"a number too large":       framed(`{"kind":"free","buffer":99999999999999999999}`),
	} {
		_, err := Read(bytes.NewReader(b))
		require.ErrorIs(t, err, ErrProtocol, name)
		assert.NotErrorIs(t, err, io.EOF, name)
	}
}

// manyVocabularies names n files of vocabularies.
func manyVocabularies(n int) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		files[strconv.Itoa(i)] = "f"
	}
	return files
}

func TestLimitsOfAnOpen(t *testing.T) {
	base := func() *Open {
		return &Open{
			Version: Version, Source: Source{Files: []string{"x"}}, Share: Share{Ranks: 4, Rank: 3},
		}
	}
	require.NoError(t, base().validate())
	for name, c := range map[string]struct{ good, bad func(*Open) }{
		"vocabularies": {func(o *Open) { o.Vocabularies = manyVocabularies(maxVocabularies) },
			func(o *Open) { o.Vocabularies = manyVocabularies(maxVocabularies + 1) }},
		"files": {func(o *Open) { o.Files = make([]string, maxFiles) },
			func(o *Open) { o.Files = make([]string, maxFiles+1) }},
		"patterns of names": {func(o *Open) { o.Include = make([]string, maxPatterns) },
			func(o *Open) { o.Exclude = make([]string, maxPatterns+1) }},
		"no files":      {func(*Open) {}, func(o *Open) { o.Files = nil }},
		"epochs":        {func(o *Open) { o.Epochs = maxEpochs }, func(o *Open) { o.Epochs = maxEpochs + 1 }},
		"batch":         {func(o *Open) { o.Batch = math.MaxInt32 }, func(o *Open) { o.Batch = math.MaxInt32 + 1 }},
		"batch below 0": {func(o *Open) { o.Batch = 0 }, func(o *Open) { o.Batch = -1 }},
		"split":         {func(o *Open) { o.SplitBatches = 1 }, func(o *Open) { o.SplitBatches = -1 }},
		"window":        {func(o *Open) { o.Window = 1 }, func(o *Open) { o.Window = -1 }},
		"queue":         {func(o *Open) { o.QueueBytes = maxBuffer }, func(o *Open) { o.QueueBytes = maxBuffer + 1 }},
		"engine":        {func(o *Open) { o.EngineBytes = maxEngine }, func(o *Open) { o.EngineBytes = maxEngine + 1 }},
		"engine, least": {func(o *Open) { o.EngineBytes = 0 }, func(o *Open) { o.EngineBytes = -1 }},
		"threads":       {func(o *Open) { o.Threads = maxThreads }, func(o *Open) { o.Threads = maxThreads + 1 }},
		"cores":         {func(o *Open) { o.TrainerCores = -1 }, func(o *Open) { o.TrainerCores = -2 }},
		"rank":          {func(o *Open) { o.Rank = 0 }, func(o *Open) { o.Rank = 4 }},
		"rank below 0":  {func(o *Open) { o.Rank = 1 }, func(o *Open) { o.Rank = -1 }},
		"ranks":         {func(o *Open) { o.Ranks = maxRanks }, func(o *Open) { o.Ranks = maxRanks + 1 }},
		"local ranks":   {func(o *Open) { o.LocalRanks = 4 }, func(o *Open) { o.LocalRanks = 5 }},
		"rank tail":     {func(o *Open) { o.RankTail = "keep" }, func(o *Open) { o.RankTail = "all" }},
		"patience":      {func(o *Open) { o.Patience = 1 }, func(o *Open) { o.Patience = -1 }},
		"socket": {func(o *Open) { o.Listen = strings.Repeat("x", 100) },
			func(o *Open) { o.Listen = strings.Repeat("x", 101) }},
	} {
		good, bad := base(), base()
		c.good(good)
		require.NoError(t, good.validate(), name)
		c.bad(bad)
		var option *OptionError
		require.ErrorAs(t, bad.validate(), &option, name)
	}
}

// FuzzRead reads bytes of a trainer. The result is an error, or a message that stays the same when it is written and
// read again.
func FuzzRead(f *testing.F) {
	for _, m := range samples() {
		b, err := Encode(m)
		require.NoError(f, err)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b))
		if err != nil {
			if len(b) == 0 {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.ErrorIs(t, err, ErrProtocol)
			}
			return
		}
		if o, ok := m.(*Open); ok && o.validate() == nil {
			_, err := o.jobOptions()
			if err != nil {
				require.NotEmpty(t, describeFailure(err).Code)
			}
		}
		again, err := Encode(m)
		require.NoError(t, err)
		same, err := Read(bytes.NewReader(again))
		require.NoError(t, err)
		once, err := Encode(same)
		require.NoError(t, err)
		require.Equal(t, again, once)
	})
}
