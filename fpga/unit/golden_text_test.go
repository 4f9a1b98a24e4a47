package unit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/split"
	"github.com/millrace/millrace/fpga/unit/texttoint"
	"github.com/millrace/millrace/fpga/unit/texttoseconds"
)

// textNumbers runs a case of text that is read as integers: all texts of a case have a result, or each of them fails.
func textNumbers(t *testing.T, c goldenCase) {
	var v struct {
		Fn            string
		Input         []string
		Offset        string
		OffsetSeconds whole `json:"offset_seconds"`
		Output        []whole
		Fails         bool
	}
	c.into(t, &v)
	zone := texttoseconds.Zone{}
	if v.Offset != "" {
		seconds, ok := texttoseconds.ParseOffset(v.Offset)
		require.True(t, ok)
		require.Equal(t, int64(v.OffsetSeconds), seconds)
		zone = texttoseconds.Zone{Known: true, Offset: seconds}
	}
	kernel, reference := texttoint.Integers, texttoint.Reference
	if v.Fn == "text_to_seconds" {
		kernel = func(dst []int64, offsets []uint32, data, valid []byte) error {
			return texttoseconds.Seconds(dst, offsets, data, valid, zone)
		}
		reference = func(text []byte) (int64, error) { return texttoseconds.Reference(text, zone) }
	}
	require.True(t, v.Fails || len(v.Output) == len(v.Input))
	for i, text := range v.Input {
		got := []int64{-1}
		err := kernel(got, []uint32{0, uint32(len(text))}, []byte(text), nil)
		byDefinition, referenceErr := reference([]byte(text))
		if v.Fails {
			require.Error(t, err, text)
			require.Error(t, referenceErr, text)
			continue
		}
		require.NoError(t, err, text)
		require.NoError(t, referenceErr, text)
		require.Equal(t, int64(v.Output[i]), got[0], text)
		require.Equal(t, int64(v.Output[i]), byDefinition, text)
	}
}

// textParts runs a case of texts that are cut.
func textParts(t *testing.T, c goldenCase) {
	var v struct {
		Separator, Empty string
		Input            []string
		Output           [][]string
	}
	c.into(t, &v)
	require.NotEmpty(t, v.Input)
	require.Len(t, v.Output, len(v.Input))
	require.Contains(t, []string{"drop", "keep"}, v.Empty)
	rule := split.Rule{Separator: v.Separator, KeepEmpty: v.Empty == "keep"}
	for i, text := range v.Input {
		parts, ok := split.Reference([]byte(text), rule)
		require.True(t, ok, text)
		require.Len(t, parts, len(v.Output[i]), text)
		var lists split.Lists
		require.NoError(t, lists.Split(split.Texts{Offsets: []uint32{0, uint32(len(text))}, Data: []byte(text)}, nil, rule))
		require.Equal(t, []int32{int32(len(parts))}, lists.Lengths, text)
		for k, want := range v.Output[i] {
			require.Equal(t, want, string(parts[k]), text)
			require.Equal(t, want, string(lists.Data[lists.Offsets[k]:lists.Offsets[k+1]]), text)
		}
	}
}
