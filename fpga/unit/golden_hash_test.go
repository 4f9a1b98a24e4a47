package unit_test

import (
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/cartesian"
	"github.com/millrace/millrace/fpga/unit/idlisttransform"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/ngram"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

func sigridVerdict(c goldenCase) verdict {
	switch {
	case c.has("output"):
		return run(sigridValues)
	case c.has("list_output"):
		return run(sigridLists)
	case c.has("raw_output"):
		return run(sigridRaw)
	case c.has("multiplier"):
		return run(sigridMultiplier)
	case c.has("max_value_errors"):
		return run(sigridErrors)
	}
	return verdict{}
}

func sigrid(t *testing.T, salt, limit whole, ids []int64) []int64 {
	t.Helper()
	h, err := sigridhash.New(sigridhash.Params{Salt: int64(salt), Max: int64(limit)})
	require.NoError(t, err)
	out := make([]int64, len(ids))
	proving.WithVariants(func() {
		clear(out)
		h.Hash(out, ids)
		for i, id := range ids {
			require.Equal(t, sigridhash.Reference(id, int64(salt), int64(limit)), out[i], "reference, id %d", id)
		}
	})
	return out
}

func sigridValues(t *testing.T, c goldenCase) {
	var v struct {
		Salt          whole
		Max           whole `json:"max_value"`
		Input, Output []whole
	}
	c.into(t, &v)
	require.Equal(t, wholes(v.Output), sigrid(t, v.Salt, v.Max, wholes(v.Input)))
}

// A list with a null is nulled by the engine before a unit sees it; the others are hashed value by value.
func sigridLists(t *testing.T, c goldenCase) {
	var v struct {
		Salt   whole
		Max    whole      `json:"max_value"`
		Input  [][]*whole `json:"list_input"`
		Output [][]whole  `json:"list_output"`
	}
	c.into(t, &v)
	for i, list := range v.Input {
		ids, ok := noNulls(list)
		require.Equal(t, v.Output[i] != nil, ok)
		if ok {
			require.Equal(t, wholes(v.Output[i]), sigrid(t, v.Salt, v.Max, ids))
		}
	}
}

// noNulls returns a list's values; ok is false for a null list and for a list that holds a null.
func noNulls(list []*whole) (values []int64, ok bool) {
	for _, v := range list {
		if v == nil {
			return nil, false
		}
		values = append(values, int64(*v))
	}
	return values, list != nil
}

func sigridRaw(t *testing.T, c goldenCase) {
	var v struct {
		Salt   whole
		Input  []whole
		Output []whole `json:"raw_output"`
	}
	c.into(t, &v)
	mod, err := positivemodulus.New(math.MaxInt64)
	require.NoError(t, err)
	want := wholes(v.Output)
	for i, id := range v.Input {
		require.Equal(t, want[i], sigridhash.Raw(int64(id), int64(v.Salt)))
	}
	mod.Mod(want, want)
	require.Equal(t, want, sigrid(t, v.Salt, math.MaxInt64, wholes(v.Input)))
}

// TorchArrow's multiplier and shift are its own; they compute floorMod, as the reciprocals of package floormod do.
func sigridMultiplier(t *testing.T, c goldenCase) {
	var v struct {
		Max        whole `json:"max_value"`
		Multiplier unsigned
		Shift      uint
	}
	c.into(t, &v)
	d := int64(v.Max)
	hashes := []int64{0, 1, -1, d, -d, d - 1, 1 - d, d + 1, math.MaxInt64, math.MinInt64, math.MinInt64 + d,
		math.MaxInt64 - d}
	for i := range int64(1000) {
		hashes = append(hashes, sigridhash.Raw(i, d))
	}
	ours := make([]int64, len(hashes))
	mod, err := positivemodulus.New(d)
	require.NoError(t, err)
	mod.Mod(ours, hashes)
	for i, h := range hashes {
		sign := h >> 63
		q, _ := bits.Mul64(uint64(v.Multiplier), uint64(sign^h))
		require.Equal(t, h-(sign^int64(q>>v.Shift))*d, ours[i], "%d mod %d", h, d)
	}
}

func sigridErrors(t *testing.T, c goldenCase) {
	var v struct {
		Bad []whole `json:"max_value_errors"`
	}
	c.into(t, &v)
	require.NotEmpty(t, v.Bad)
	for _, limit := range v.Bad {
		_, err := sigridhash.New(sigridhash.Params{Max: int64(limit)})
		require.ErrorIs(t, err, sigridhash.ErrMax)
	}
}

func follyVerdict(c goldenCase) verdict {
	switch c.text("fn") {
	case "twang_mix64":
		return run(func(t *testing.T, c goldenCase) {
			var v struct{ Input, Output []unsigned }
			c.into(t, &v)
			for i, in := range v.Input {
				require.Equal(t, uint64(v.Output[i]), sigridhash.TwangMix64(uint64(in)))
			}
		})
	case "hash_128_to_64(upper,lower)":
		return run(func(t *testing.T, c goldenCase) {
			var v struct {
				Input  [][2]unsigned
				Output []unsigned
			}
			c.into(t, &v)
			for i, in := range v.Input {
				require.Equal(t, uint64(v.Output[i]), sigridhash.Hash128to64(uint64(in[0]), uint64(in[1])))
			}
		})
	}
	return verdict{}
}

func windowIDs(t *testing.T, c goldenCase) {
	var v struct {
		N             int64
		Input, Output [][]whole
	}
	c.into(t, &v)
	for i, list := range v.Input {
		ids := wholes(list)
		want := wholes(v.Output[i])
		require.Equal(t, want, append([]int64{}, ngram.Reference(ids, v.N)...), "reference")
		kept, err := ngram.NGram([]int32{int32(len(ids))}, ids, v.N)
		require.NoError(t, err)
		require.Equal(t, want, ids[:kept])
	}
}

func pairIDs(t *testing.T, c goldenCase) {
	var v struct {
		Inputs [][2][]whole
		Output [][]whole
	}
	c.into(t, &v)
	p := cartesian.Params{MaxLength: cartesian.MaxLength, Fail: true}
	for i, in := range v.Inputs {
		a, b := wholes(in[0]), wholes(in[1])
		want := wholes(v.Output[i])
		ids, ok := cartesian.Reference(a, b, p)
		require.True(t, ok)
		require.Equal(t, want, append([]int64{}, ids...), "reference")
		lengths, ids, err := cartesian.Lists(nil, nil, cartesian.Input{Lengths: []int32{int32(len(a))}, IDs: a},
			cartesian.Input{Lengths: []int32{int32(len(b))}, IDs: b}, p)
		require.NoError(t, err)
		require.Equal(t, []int32{int32(len(want))}, lengths)
		require.Equal(t, want, append([]int64{}, ids...))
	}
}

func commonIDs(t *testing.T, c goldenCase) {
	var v struct {
		Inputs [][2][]whole
		Output [][]whole
	}
	c.into(t, &v)
	for i, in := range v.Inputs {
		a, b := wholes(in[0]), wholes(in[1])
		want := wholes(v.Output[i])
		require.Equal(t, want, idlisttransform.Reference(a, b), "reference")
		lengths, ids, err := new(idlisttransform.Intersection).Lists(nil, []int64{},
			idlisttransform.Input{Lengths: []int32{int32(len(a))}, IDs: a},
			idlisttransform.Input{Lengths: []int32{int32(len(b))}, IDs: b})
		require.NoError(t, err)
		require.Equal(t, []int32{int32(len(want))}, lengths)
		require.Equal(t, want, ids)
	}
}

func proposedVerdict(c goldenCase) verdict {
	if c.text("fn") == "PositiveModulus(x,m) = floorMod(x,m), m>0" {
		return run(func(t *testing.T, c goldenCase) {
			var v struct {
				Input  [][2]whole
				Output []whole
			}
			c.into(t, &v)
			for i, in := range v.Input {
				m, err := positivemodulus.New(int64(in[1]))
				require.NoError(t, err)
				got := []int64{int64(in[0])}
				m.Mod(got, got)
				require.Equal(t, int64(v.Output[i]), got[0], "%d mod %d", in[0], in[1])
			}
		})
	}
	switch fn := c.text("fn"); {
	case strings.HasPrefix(fn, "NGram"):
		return run(windowIDs)
	case strings.HasPrefix(fn, "GetLocalHour(unix_seconds, fixed"):
		return run(localHours)
	case strings.HasPrefix(fn, "GetLocalHour"):
		return run(zoneHours)
	case strings.HasPrefix(fn, "MapId"):
		return run(mapOfIDs)
	}
	if strings.HasPrefix(c.text("fn"), "Onehot") {
		return run(classes)
	}
	if strings.HasPrefix(c.text("fn"), "Cartesian") {
		return run(pairIDs)
	}
	if strings.HasPrefix(c.text("fn"), "IdListTransform") {
		return run(commonIDs)
	}
	if strings.HasPrefix(c.text("fn"), "Enumerate") {
		return run(positions)
	}
	if strings.HasPrefix(c.text("fn"), "Sampling") {
		return runBy(otherTest{"sdk/selection/condition_test.go", "TestSamplingKeepsTheRowsOfTheGoldenFile"})
	}
	return verdict{}
}
