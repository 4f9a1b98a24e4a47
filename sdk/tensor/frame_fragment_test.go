package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// formOfFragment is the second fragment of a mini-batch whose schema has sets of keys.
func formOfFragment() *MiniBatch {
	m := New(setSchemas()["lists"], 2, nil)
	m.Name, m.Fragment = Name{Job: [32]byte{0xab, 31: 0xcd}, Epoch: 1, Number: 5}, Fragment{Index: 1, Of: 4}
	m.Label, m.Dense = []float32{0, 1}, []float32{1, 2}
	m.Lengths, m.Values64 = []int32{2, 2, 1, 1, 0, 1, 0, 0}, []int64{7, 8, 7, 8, 1, 1, 5}
	return m
}

// TestFramesOfFragments checks that a fragment of every schema comes back as it was, and only for a reader that asked
// for it.
func TestFramesOfFragments(t *testing.T) {
	all := schemas()
	for name, s := range setSchemas() {
		all["sets "+name] = s
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			m := random(t, s, 3, 7)
			m.Fragment = Fragment{Index: 2, Of: 6}
			b, err := AppendFrame(nil, m)
			require.NoError(t, err)
			assert.Contains(t, string(b), `"format":"millrace.frame/4"`)
			assert.Contains(t, string(b), `"fragment":"2/6"`)
			crc := dataSum(b)
			require.NotNil(t, readExpected(b, crc, m.Name, m.Fragment, s), "it was parsed")
			for reader, read := range map[string]func() (*MiniBatch, error){
				"parsed":   func() (*MiniBatch, error) { return ReadFrame(b) },
				"expected": func() (*MiniBatch, error) { return ReadFrameOf(b, crc, m.Name, m.Fragment, s) },
			} {
				back, err := read()
				require.NoError(t, err, reader)
				require.Empty(t, Diff(m, back), reader)
			}
			for _, other := range []Fragment{{}, {Index: 1, Of: 6}, {Index: 2, Of: 7}} {
				_, err := ReadFrameOf(b, crc, m.Name, other, s)
				require.ErrorIs(t, err, ErrFrame)
				require.ErrorContains(t, err, fmt.Sprintf("it is fragment 2/6, not %v", other))
			}
			if s.Sets() == 0 {
				m.Fragment = Fragment{}
				whole, err := AppendFrame(nil, m)
				require.NoError(t, err)
				_, err = ReadFrameOf(whole, crc, m.Name, Fragment{Index: 2, Of: 6}, s)
				require.ErrorContains(t, err, "it is fragment 0/0, not 2/6")
			}
		})
	}
}

func TestFragmentsAreBounded(t *testing.T) {
	for _, c := range []struct {
		fragment Fragment
		says     string // "": it is a fragment
	}{
		{Fragment{Index: 0, Of: 2}, ""},
		{Fragment{Index: 1, Of: 2}, ""},
		{Fragment{Index: 2, Of: 2}, "fragment 2/2: its index is 2, want 0 to 1"},
		{Fragment{Index: -1, Of: 2}, "fragment -1/2: its index is -1, want 0 to 1"},
		{Fragment{Index: 0, Of: 1}, "fragment 0/1: the mini-batch has 1 fragments, want 2 to"},
		{Fragment{Index: 1, Of: 0}, "has 0 fragments, want 2 to"},
		{Fragment{Index: 0, Of: -1}, "has -1 fragments, want 2 to"},
		{Fragment{Index: MaxRows - 1, Of: MaxRows}, ""},
		{Fragment{Index: 0, Of: MaxRows + 1}, "fragments, want 2 to"},
	} {
		for _, rows := range []int{0, 3} {
			m := random(t, schemas()["label only"], rows, 1)
			m.Fragment = c.fragment
			_, err := writeFrame(io.Discard, m)
			if c.says == "" {
				require.NoError(t, err, "%v", c)
				continue
			}
			require.ErrorIs(t, err, ErrShape)
			require.ErrorContains(t, err, c.says)
		}
	}
	m := formOfSets(t)
	m.Fragment = Fragment{Index: 0, Of: 4}
	_, err := writeFrame(io.Discard, m)
	require.ErrorContains(t, err, "fragment 0/4 is deduplicated: deduplicate when its mini-batch is joined")
}

// TestReadFrameRefusesFragments reads headers of fragments with one lie each.
func TestReadFrameRefusesFragments(t *testing.T) {
	b, err := AppendFrame(nil, formOfFragment())
	require.NoError(t, err)
	const wholeSets = `"sets":"[1,1,0,2]"`
	for name, c := range map[string]struct{ old, new, says string }{
		"an older format":        {`frame/4`, `frame/3`, `want "millrace.frame/4"`},
		"no fragment":            {`,"fragment":"1/4"`, ``, `want "millrace.frame/3"`},
		"an empty fragment":      {`"fragment":"1/4"`, `"fragment":""`, `want "millrace.frame/3"`},
		"one number":             {`"fragment":"1/4"`, `"fragment":"1"`, "want INDEX/OF"},
		"three numbers":          {`"fragment":"1/4"`, `"fragment":"1/4/5"`, "want INDEX/OF"},
		"no index":               {`"fragment":"1/4"`, `"fragment":"/4"`, "want INDEX/OF"},
		"no number of fragments": {`"fragment":"1/4"`, `"fragment":"1/"`, "want INDEX/OF"},
		"an index beyond int64":  {`"fragment":"1/4"`, `"fragment":"9223372036854775808/4"`, "want INDEX/OF"},
		"the zero fragment":      {`"fragment":"1/4"`, `"fragment":"0/0"`, `want "millrace.frame/3"`},
		"a negative index":       {`"fragment":"1/4"`, `"fragment":"-1/4"`, "its index is -1, want 0 to 3"},
		"the only one":           {`"fragment":"1/4"`, `"fragment":"0/1"`, "has 1 fragments, want 2 to"},
		"an index too large":     {`"fragment":"1/4"`, `"fragment":"4/4"`, "its index is 4, want 0 to 3"},
		"more than a row each":   {`"fragment":"1/4"`, `"fragment":"1/9223372036854775807"`, "fragments, want 2 to"},
		"a needless zero":        {`"fragment":"1/4"`, `"fragment":"1/04"`, "canonical"},
		"a sign":                 {`"fragment":"1/4"`, `"fragment":"+1/4"`, "canonical"},
		"at another place":       {`,"fragment":"1/4"`, `,"fragment":"1/4","fragment":"1/4"`, "canonical"},
		"unique rows":            {wholeSets, wholeSets + `,"unique":"[2,1]"`, "canonical"},
		"a set too many":         {wholeSets, `"sets":"[1,1,0,2,3]"`, "4 keys, 5 sets"},
		"lengths of unique rows": {`"shape":[4,2]`, `"shape":[8]`, "kjt.lengths: shape"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFrame(reframe(t, b, c.old, c.new))
			require.ErrorIs(t, err, ErrFrame)
			assert.ErrorContains(t, err, c.says)
		})
	}
	m, sum, head := formOfFragment(), dataSum(b), 8+int(binary.LittleEndian.Uint64(b))
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			crc := sum
			if i >= head {
				crc = dataSum(c)
			}
			_, err := ReadFrameOf(c, crc, m.Name, m.Fragment, m.Schema)
			require.ErrorIs(t, err, ErrFrame, "bit %d of byte %d", bit, i)
		}
	}
	b, err = AppendFrame(nil, formMiniBatch())
	require.NoError(t, err)
	_, err = ReadFrame(reframe(t, b, `,"shapes"`, `,"fragment":"0/3","shapes"`))
	require.ErrorContains(t, err, `want "millrace.frame/4"`)
}
