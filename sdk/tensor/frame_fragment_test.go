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

// formOfFragment is rows 1 and 2 of a mini-batch of 4 rows whose schema has sets of keys.
func formOfFragment() *MiniBatch {
	m := New(setSchemas()["lists"], 2, nil)
	m.Name, m.Fragment = Name{Job: [32]byte{0xab, 31: 0xcd}, Epoch: 1, Number: 5}, Fragment{First: 1, Of: 4}
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
			m.Fragment = Fragment{First: 2, Of: 6}
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
			for _, other := range []Fragment{{}, {First: 1, Of: 6}, {First: 2, Of: 7}} {
				_, err := ReadFrameOf(b, crc, m.Name, other, s)
				require.ErrorIs(t, err, ErrFrame)
				require.ErrorContains(t, err, fmt.Sprintf("it has the rows 2/6, not %v", other))
			}
			if s.Sets() == 0 {
				m.Fragment = Fragment{}
				whole, err := AppendFrame(nil, m)
				require.NoError(t, err)
				_, err = ReadFrameOf(whole, crc, m.Name, Fragment{First: 2, Of: 6}, s)
				require.ErrorContains(t, err, "it has the rows 0/0, not 2/6")
			}
		})
	}
}

func TestFragmentsAreBounded(t *testing.T) {
	for _, c := range []struct {
		fragment Fragment
		rows     int
		says     string // "": it is a fragment
	}{
		{Fragment{First: 0, Of: 4}, 3, ""},
		{Fragment{First: 1, Of: 4}, 3, ""},
		{Fragment{First: 3, Of: 4}, 1, ""},
		{Fragment{First: 2, Of: 4}, 3, "fragment 2/4 has 3 rows, want 1 to 2"},
		{Fragment{First: 0, Of: 4}, 5, "fragment 0/4 has 5 rows, want 1 to 4"},
		{Fragment{First: 4, Of: 4}, 1, "fragment 4/4 has 1 rows, want 1 to 0"},
		{Fragment{First: 1, Of: 4}, 0, "fragment 1/4 has 0 rows, want 1 to 3"},
		{Fragment{First: -1, Of: 4}, 1, "fragment -1/4 has 1 rows"},
		{Fragment{First: 0, Of: 4}, 4, "a whole mini-batch is not marked as a fragment"},
		{Fragment{First: 1, Of: 0}, 1, "the mini-batch has 0 rows, want 1 to"},
		{Fragment{First: 0, Of: -1}, 1, "the mini-batch has -1 rows, want 1 to"},
		{Fragment{First: 0, Of: MaxRows}, 1, ""},
		{Fragment{First: MaxRows - 1, Of: MaxRows}, 1, ""},
		{Fragment{First: 0, Of: MaxRows + 1}, 1, "rows, want 1 to"},
	} {
		m := random(t, schemas()["label only"], c.rows, 1)
		m.Fragment = c.fragment
		_, err := writeFrame(io.Discard, m)
		if c.says == "" {
			require.NoError(t, err, "%v", c)
			continue
		}
		require.ErrorIs(t, err, ErrShape)
		require.ErrorContains(t, err, c.says)
	}
	m := formOfSets(t)
	m.Fragment = Fragment{First: 0, Of: 4}
	_, err := writeFrame(io.Discard, m)
	require.ErrorContains(t, err, "fragment 0/4 is deduplicated: deduplicate when its mini-batch is joined")
}

// TestReadFrameRefusesFragments reads headers of fragments with one lie each.
func TestReadFrameRefusesFragments(t *testing.T) {
	b, err := AppendFrame(nil, formOfFragment())
	require.NoError(t, err)
	const wholeSets = `"sets":"[1,1,0,2]"`
	for name, c := range map[string]struct{ old, new, says string }{
		"an older format":          {`frame/4`, `frame/3`, `want "millrace.frame/4"`},
		"no fragment":              {`,"fragment":"1/4"`, ``, `want "millrace.frame/3"`},
		"an empty fragment":        {`"fragment":"1/4"`, `"fragment":""`, `want "millrace.frame/3"`},
		"one number":               {`"fragment":"1/4"`, `"fragment":"1"`, "want FIRST/OF"},
		"three numbers":            {`"fragment":"1/4"`, `"fragment":"1/4/5"`, "want FIRST/OF"},
		"no first row":             {`"fragment":"1/4"`, `"fragment":"/4"`, "want FIRST/OF"},
		"no number of rows":        {`"fragment":"1/4"`, `"fragment":"1/"`, "want FIRST/OF"},
		"a row beyond int64":       {`"fragment":"1/4"`, `"fragment":"9223372036854775808/4"`, "want FIRST/OF"},
		"the zero fragment":        {`"fragment":"1/4"`, `"fragment":"0/0"`, `want "millrace.frame/3"`},
		"a negative row":           {`"fragment":"1/4"`, `"fragment":"-1/4"`, "fragment -1/4 has 2 rows"},
		"the whole mini-batch":     {`"fragment":"1/4"`, `"fragment":"0/2"`, "has all of its rows"},
		"a row too many":           {`"fragment":"1/4"`, `"fragment":"3/4"`, "fragment 3/4 has 2 rows, want 1 to 1"},
		"a sum beyond int64":       {`"fragment":"1/4"`, `"fragment":"9223372036854775807/4"`, "want 1 to"},
		"more rows than there are": {`"fragment":"1/4"`, `"fragment":"1/9223372036854775807"`, "want 1 to"},
		"a needless zero":          {`"fragment":"1/4"`, `"fragment":"1/04"`, "canonical"},
		"a sign":                   {`"fragment":"1/4"`, `"fragment":"+1/4"`, "canonical"},
		"at another place":         {`,"fragment":"1/4"`, `,"fragment":"1/4","fragment":"1/4"`, "canonical"},
		"unique rows":              {wholeSets, wholeSets + `,"unique":"[2,1]"`, "canonical"},
		"a set too many":           {wholeSets, `"sets":"[1,1,0,2,3]"`, "4 keys, 5 sets"},
		"lengths of unique rows":   {`"shape":[4,2]`, `"shape":[8]`, "kjt.lengths: shape"},
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
