package pipeline_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/unit/localhour"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// TestEveryZoneIsAProgram expands every zone within the limits of programs, and compares hours with those of Go's
// package time, in the years of the expansion.
func TestEveryZoneIsAProgram(t *testing.T) {
	least := time.Date(1900, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	most := time.Date(2101, time.January, 1, 0, 0, 0, 0, time.UTC).Unix() - 1
	names, err := os.ReadFile("zones.txt")
	require.NoError(t, err)
	for _, name := range strings.Fields(string(names)) {
		zone, err := pipeline.LoadZone(name)
		require.NoError(t, err)
		o := pipeline.ExpandZone(zone)
		kernel, err := localhour.New(o.Keys, o.Values)
		require.NoError(t, err, name)
		require.LessOrEqual(t, len(o.Keys), getlocalhour.MaxChanges/4, name)
		times := []int64{least, most, 0, -1}
		for _, start := range o.Keys[1:] {
			times = append(times, start-1, start, start+1)
		}
		for at := least; at < most; at += 86400*40 + 1801 {
			times = append(times, at)
		}
		hours := make([]int64, len(times))
		kernel.Hours(hours, times)
		for i, at := range times {
			require.Equal(t, int64(time.Unix(at, 0).In(zone).Hour()), hours[i], "%s at %d", name, at)
		}
	}
}

// TestZonesOutsideTheYears holds the first and the last offset.
func TestZonesOutsideTheYears(t *testing.T) {
	zone, err := pipeline.LoadZone("Europe/Berlin")
	require.NoError(t, err)
	o := pipeline.ExpandZone(zone)
	assert.Equal(t, int64(math.MinInt64), o.Keys[0])
	assert.Equal(t, int64(3600), o.Values[0], "from 1893 on")
	last := time.Unix(o.Keys[len(o.Keys)-1], 0).UTC()
	assert.Equal(t, 2100, last.Year())
	assert.Equal(t, int64(3600), o.Values[len(o.Values)-1], "winter")
}

// Golden hours of zones, of a file of vectors.
func TestGoldenZones(t *testing.T) {
	b, err := os.ReadFile("../../fpga/unit/testdata/golden/proposed_ops.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Rows []struct {
				Zone string `json:"tz"`
				Time int64  `json:"unix_seconds"`
				Hour int64
			}
		}
	}
	require.NoError(t, json.Unmarshal(b, &file))
	checked := 0
	for _, c := range file.Cases {
		for _, row := range c.Rows {
			_, p, err := lower("sparse: [{columns: [i], ops: [get_local_hour: {zone: "+row.Zone+"}]}]", zoo())
			require.NoError(t, err)
			o := p.Columns[0].Sinks[0].Ops[0].(*getlocalhour.Op)
			assert.Equal(t, row.Hour, localhour.Reference(row.Time, o.Starts, o.Offsets), "%s at %d", row.Zone, row.Time)
			checked++
		}
	}
	assert.Equal(t, 10, checked)
}

// The digest of a pipeline with a zone is that of the zone's table, so a document with the table makes the same job on
// a machine that has other rules, or no such zone.
func TestPinnedZones(t *testing.T) {
	const doc = "label: {column: label, ops: [get_local_hour: {zone: Asia/Kathmandu}]}\n" +
		"dense: [{columns: [f]}, {columns: [i], ops: [get_local_hour: {offset: +01:00}]}]\n" +
		"sparse: [{columns: [i, c_0], ops: [get_local_hour: {zone: Europe/Berlin}, map_id: {table: [1, 2]}]}, {columns: " +
		"[v]}]\n" +
		"values: [{as: v, inputs: [i, c_0], ops: [cartesian, get_local_hour: {zone: Asia/Tokyo}]}]"
	s, err := pipeline.Parse([]byte(doc))
	require.NoError(t, err)
	before := string(s.JSON())
	pinned, changed, err := s.PinZones()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, before, string(s.JSON()), "the spec itself stays")
	assert.Equal(t, 3, strings.Count(string(pinned.JSON()), `"changes":{"-9223372036854775808":`))
	again, err := pipeline.Parse(pinned.JSON())
	require.NoError(t, err)
	_, changed, err = again.PinZones()
	require.NoError(t, err)
	assert.False(t, changed)
	want, err := resolve.Pipeline(s, zoo())
	require.NoError(t, err)
	got, err := resolve.Pipeline(again, zoo())
	require.NoError(t, err)
	assert.Equal(t, want.Digest(), got.Digest())

	elsewhere, err := pipeline.Parse([]byte(strings.ReplaceAll(string(pinned.JSON()), "Europe/Berlin", "Mars/Olympus")))
	require.NoError(t, err, "the name is for people")
	got, err = resolve.Pipeline(elsewhere, zoo())
	require.NoError(t, err)
	assert.Equal(t, want.Digest(), got.Digest())

	unknown := &pipeline.Spec{Sparse: []pipeline.Group{{Columns: pipeline.Columns("i"),
		Ops: []pipeline.Op{pipeline.GetLocalHour(pipeline.With("zone", pipeline.Text("Mars/Olympus")))}}}}
	_, _, err = unknown.PinZones()
	require.Error(t, err)
}

// A table that many features use is one list in memory, and counts once.
func TestTablesAreShared(t *testing.T) {
	r, p, err := lower("sparse: [{columns: [c_0, c_1, c_2], ops: [map_id: {table: {5: 1, 7: 2}}]}]", zoo())
	require.NoError(t, err)
	first := p.Columns[0].Sinks[0].Ops[0].(*mapid.Op)
	last := p.Columns[2].Sinks[0].Ops[0].(*mapid.Op)
	assert.Same(t, &first.Keys[0], &last.Keys[0])
	assert.Equal(t, int64(3), r.Keys[0].NumEmbeddings)
}

// Tables are read back from JSON as they were.
func TestTablesInJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64(), 1, 9).Draw(t, "values")
		table := pipeline.IDTable{Values: values}
		if rapid.Bool().Draw(t, "with keys") {
			table.Keys = []int64{math.MinInt64}
			for i := range values[1:] {
				table.Keys = append(table.Keys, int64(i*i))
			}
		}
		s := &pipeline.Spec{Batch: 1, Sparse: []pipeline.Group{{Columns: pipeline.Columns("i"),
			Ops: []pipeline.Op{pipeline.MapID(table, pipeline.With("default", pipeline.Int(5)))}}}}
		again, err := pipeline.Parse(s.JSON())
		require.NoError(t, err)
		got, _ := again.Sparse[0].Ops[0].Argument("table")
		require.Equal(t, pipeline.Value(table), got.Value)
	})
}
