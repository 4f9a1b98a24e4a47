package vocabulary

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// goldenCase is a case of vocab.json. A scheme has some of its fields.
type goldenCase struct {
	Scheme    string                       `json:"scheme"`
	InputU32  []int64                      `json:"input_u32"`
	AfterMod  []int64                      `json:"after_mod"`
	Input     []json.RawMessage            `json:"input"`
	Inputs    map[string][]json.RawMessage `json:"inputs"`
	Files     [][]json.RawMessage          `json:"files"`
	Output    json.RawMessage              `json:"output"`
	Order     []int64                      `json:"vocab_order"`
	File      []string                     `json:"vocab_file"`
	Threshold uint64                       `json:"threshold"`
	Frequency uint64                       `json:"freq_threshold"`
	MaxSize   uint64                       `json:"max_size"`
}

// key reads a key of a case: a number, or a text of up to 8 bytes, as a number in the same order. It returns no key for
// null.
func key(t *testing.T, raw json.RawMessage) []int64 {
	t.Helper()
	if string(raw) == "null" {
		return nil
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return []int64{n}
	}
	var s string
	require.NoError(t, json.Unmarshal(raw, &s))
	require.LessOrEqual(t, len(s), 8)
	for _, c := range []byte(s + strings.Repeat("\x00", 8-len(s))) {
		n = n<<8 | int64(c)
	}
	return []int64{n}
}

func keysOf(t *testing.T, raws []json.RawMessage) testColumn {
	t.Helper()
	c := make(testColumn, len(raws))
	for i, raw := range raws {
		c[i] = key(t, raw)
	}
	return c
}

// idsOf reads a list of ids.
func idsOf(t *testing.T, raw json.RawMessage) (ids []int64) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &ids))
	return ids
}

// nvtabular are the rules of NVTabular's Categorify: 0 is padding, 1 null, 2 what the vocabulary lacks.
func nvtabular(c *goldenCase) Rules {
	r := Rules{Order: ByCount, Base: 3, Null: SomeID(1), Rare: SomeID(2), MinCount: c.Frequency}
	if c.MaxSize > 0 {
		r.MaxSize = c.MaxSize - 3
	}
	return r
}

// TestGoldenVocabularies runs every case of vocab.json: DLRM and Piper, TorchRec, NVTabular, TensorFlow Transform.
func TestGoldenVocabularies(t *testing.T) {
	document, err := os.ReadFile("../../fpga/unit/testdata/golden/vocab.json")
	require.NoError(t, err)
	var golden struct {
		Cases []goldenCase `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(document, &golden))
	require.Len(t, golden.Cases, 15)
	for _, c := range golden.Cases {
		t.Run(c.Scheme, func(t *testing.T) {
			switch {
			case strings.HasPrefix(c.Scheme, "first_appearance_0"):
				ids := c.AfterMod
				if ids == nil {
					ids = c.InputU32
				}
				column := scalars(ids...)
				v := build(t, Rules{}, column)
				mb, err := apply(t, v, 0, false, column)
				require.NoError(t, err)
				assert.Equal(t, idsOf(t, c.Output), mb.Values64)
				assert.Equal(t, c.Order, v.Tables[0])
			case strings.HasPrefix(c.Scheme, "torchrec_contiguous"):
				var all testColumn
				for _, file := range c.Files {
					all = append(all, keysOf(t, file)...)
				}
				v := build(t, Rules{Base: 2, Rare: SomeID(1), MinCount: c.Threshold}, all)
				var want [][]int64
				require.NoError(t, json.Unmarshal(c.Output, &want))
				for i, file := range c.Files {
					mb, err := apply(t, v, 0, false, keysOf(t, file))
					require.NoError(t, err)
					assert.Equal(t, want[i], mb.Values64)
				}
			case c.Scheme == "nvt_categorify joint":
				rules := nvtabular(&c)
				rules.Joint = true
				columns := []testColumn{keysOf(t, c.Inputs["Author"]), keysOf(t, c.Inputs["Engaging"])}
				mb, err := apply(t, build(t, rules, columns...), 0, false, columns...)
				require.NoError(t, err)
				var want struct{ Author, Engaging []int64 }
				require.NoError(t, json.Unmarshal(c.Output, &want))
				assert.Equal(t, append(want.Author, want.Engaging...), mb.Values64)
			case c.Scheme == "nvt_categorify combo": // of two columns; a null is the least of its column
				authors, engaging := keysOf(t, c.Inputs["Author"]), keysOf(t, c.Inputs["Engaging"])
				pairs := make(testColumn, len(authors))
				for i := range pairs {
					pair := int64(0)
					for _, side := range [][]int64{authors[i], engaging[i]} {
						if pair <<= 8; len(side) > 0 {
							pair |= side[0] >> 16 & 0xff // the letter of User_A
						}
					}
					pairs[i] = []int64{pair}
				}
				mb, err := apply(t, build(t, nvtabular(&c), pairs), 0, false, pairs)
				require.NoError(t, err)
				assert.Equal(t, idsOf(t, c.Output), mb.Values64)
			case strings.HasPrefix(c.Scheme, "nvt_categorify"):
				if strings.Contains(c.Scheme, "freq_threshold=2") {
					c.Frequency = 2
				}
				column := keysOf(t, c.Input)
				mb, err := apply(t, build(t, nvtabular(&c), column), 0, false, column)
				require.NoError(t, err)
				assert.Equal(t, idsOf(t, c.Output), mb.Values64)
				assert.True(t, mb.Schema.Fixed())
			case strings.HasPrefix(c.Scheme, "tft_vocabulary"):
				column := keysOf(t, c.Input)
				v := build(t, Rules{Order: ByCountText, Rare: SomeID(-1)}, column)
				mb, err := apply(t, v, UnknownRare, false, append(column, []int64{4711}))
				require.NoError(t, err)
				assert.Equal(t, append(idsOf(t, c.Output), -1), mb.Values64)
				var file []string
				for _, key := range v.Tables[0] {
					b, err := json.Marshal(key)
					require.NoError(t, err)
					file = append(file, string(b))
				}
				assert.Equal(t, c.File, file)
			default:
				t.Fatalf("no scheme %q", c.Scheme)
			}
		})
	}
}

// TestListsOfAVocabulary applies NVTabular's test of lists, whose rows are [A], [A, E], [B, C], [C].
func TestListsOfAVocabulary(t *testing.T) {
	const a, b, c, e = 'A', 'B', 'C', 'E'
	column := testColumn{{a}, {a, e}, {b, c}, {c}}
	mb, err := apply(t, build(t, nvtabular(&goldenCase{}), column), 0, true, column)
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 3, 6, 5, 4, 4}, mb.Values64)
	assert.Equal(t, []int32{1, 2, 2, 1}, mb.Lengths)
	assert.Equal(t, tensor.Int64, mb.Schema.IDs)
}
