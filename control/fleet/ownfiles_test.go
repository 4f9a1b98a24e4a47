package fleet

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestTheSubmittersFiles chooses a job's partitions when a submission describes files of its machine: those of live
// nodes if a node holds one that matches, and otherwise the files.
func TestTheSubmittersFiles(t *testing.T) {
	files := func(parts ...*apiv1.Partition) *apiv1.OwnFiles {
		s := agent(t, "files", parts...)
		return &apiv1.OwnFiles{Partitions: s.Partitions, Schemas: s.Schemas}
	}
	day1, day2, other := part(t, "day-1", 10), part(t, "day-2", 20), part(t, "day-2", 21)
	week, all := part(t, "week", 70), []*apiv1.Partition{day1, day2}
	both := files(all...)
	bad := func(change func(*apiv1.OwnFiles)) *apiv1.OwnFiles {
		own := files(day1)
		change(own)
		return own
	}
	for name, c := range map[string]struct {
		live, dead []*apiv1.Partition // of the nodes a and b; nil: the node was never there
		own        *apiv1.OwnFiles
		want       []string
		held       bool   // by the node a
		says       string // the error
	}{
		"nothing is placed":         {own: both, want: []string{"day-1", "day-2"}},
		"the only node is dead":     {dead: all, own: both, want: []string{"day-1", "day-2"}},
		"a node holds other data":   {live: []*apiv1.Partition{week}, own: files(day1), want: []string{"day-1"}},
		"a node holds one of two":   {live: []*apiv1.Partition{day1}, own: both, want: []string{"day-1"}, held: true},
		"a node holds another file": {live: []*apiv1.Partition{other}, own: files(day2), want: []string{"day-2"}, held: true},
		"a dead node holds more": {dead: all, own: files(day1),
			says: "only node b holds day-2, and it is dead"},
		"no file matches":    {own: files(week), says: "of 1 file of the submitter's machine none does"},
		"two files are one":  {own: files(day2, other), says: "are different files"},
		"an empty partition": {own: bad(func(o *apiv1.OwnFiles) { o.Partitions[0] = nil }), says: "partition 0 is empty"},
		"an empty schema":    {own: bad(func(o *apiv1.OwnFiles) { o.Schemas[0] = nil }), says: "schema 0 is empty"},
		"no schema":          {own: bad(func(o *apiv1.OwnFiles) { o.Schemas = nil }), says: "what the columns"},
		"a length that is not a number": {own: bad(func(o *apiv1.OwnFiles) {
			o.Schemas[0].MeanLength = map[string]float64{"c": math.NaN()}
		}), says: "a mean length of NaN"},
		"too many": {own: bad(func(o *apiv1.OwnFiles) { o.Schemas = make([]*apiv1.Schema, MaxPartitions+1) }),
			says: "at most 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(Options{})
			if c.dead != nil {
				beat(t, f, after(0), agent(t, "b", c.dead...))
				f.Tick(after(6))
				require.False(t, f.Alive("b"))
			}
			if c.live != nil {
				beat(t, f, after(6), agent(t, "a", c.live...))
			}
			s, err := f.SelectOrOwn([]string{"day-*"}, nil, c.own)
			if c.says != "" {
				require.ErrorIs(t, err, ErrSelect)
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, partitionNames(s))
			require.Len(t, s.Holders, len(c.want))
			assert.Equal(t, c.held, len(s.Holders[0]) > 0)
			assert.NotEmpty(t, s.Columns)
		})
	}
}
