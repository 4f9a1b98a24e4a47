package unit_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/localhour"
	"github.com/millrace/millrace/fpga/unit/mapid"
)

// hourAt runs the kernel and, beside it, the reference.
func hourAt(t *testing.T, at int64, starts, offsets []int64) int64 {
	zone, err := localhour.New(starts, offsets)
	require.NoError(t, err)
	got := []int64{at}
	zone.Hours(got, got)
	require.Equal(t, localhour.Reference(at, starts, offsets), got[0], "reference, at %d", at)
	return got[0]
}

func localHours(t *testing.T, c goldenCase) {
	var v struct {
		Input  [][2]json.RawMessage
		Output []int64
	}
	c.into(t, &v)
	for i, in := range v.Input {
		var at whole
		var offset int64
		require.NoError(t, json.Unmarshal(in[0], &at))
		require.NoError(t, json.Unmarshal(in[1], &offset))
		require.Equal(t, v.Output[i], hourAt(t, int64(at), []int64{math.MinInt64}, []int64{offset}), "at %d", at)
	}
}

// The table of a zone is made by package pipeline, whose tests run these cases with whole tables; here it is what
// package time says of the case's moment.
func zoneHours(t *testing.T, c goldenCase) {
	var v struct {
		Rows []struct {
			Zone string `json:"tz"`
			Time int64  `json:"unix_seconds"`
			Hour int64
		}
	}
	c.into(t, &v)
	for _, row := range v.Rows {
		zone, err := time.LoadLocation(row.Zone)
		require.NoError(t, err)
		_, offset := time.Unix(row.Time, 0).In(zone).Zone()
		got := hourAt(t, row.Time, []int64{math.MinInt64, row.Time}, []int64{0, int64(offset)})
		require.Equal(t, row.Hour, got, "%s at %d", row.Zone, row.Time)
	}
}

func mapOfIDs(t *testing.T, c goldenCase) {
	var v struct {
		Dict          map[string]whole
		Input, Output []whole
	}
	c.into(t, &v)
	var keys, values []int64
	for text := range v.Dict {
		key, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		values = append(values, int64(v.Dict[strconv.FormatInt(key, 10)]))
	}
	index, err := mapid.New(keys)
	require.NoError(t, err)
	got := wholes(v.Input)
	index.Map(got, got, values, 0)
	require.Equal(t, wholes(v.Output), got)
	for i, id := range v.Input {
		require.Equal(t, int64(v.Output[i]), mapid.Reference(int64(id), keys, values, 0), "reference")
	}
}

// A null of the output stands for what RAP leaves undefined, which is the default here.
func denseTable(t *testing.T, c goldenCase) {
	var v struct {
		Table, Input []whole
		Output       []*whole
	}
	c.into(t, &v)
	got := wholes(v.Input)
	mapid.Dense(got, got, wholes(v.Table), 0)
	for i, want := range v.Output {
		if want == nil {
			want = new(whole)
		}
		require.Equal(t, int64(*want), got[i])
		require.Equal(t, int64(*want), mapid.ReferenceDense(int64(v.Input[i]), wholes(v.Table), 0), "reference")
	}
}
