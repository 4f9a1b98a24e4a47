package terminal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

type place struct {
	Rack string `table:"rack"`
}

type machine struct {
	Name string `table:"node"`
	place
	Hidden   string
	LastSeen float64  `table:"last seen|%.1f s ago"`
	Busy     float64  `table:"busy|%.0f%%"`
	Cores    int      `table:"cores|-%d"`
	URLs     []string `table:"at"`
	Reasons  []reason `table:"reasons| "`
	Groups   []int64  `table:"row groups|%d"`
	Batches  uint64   `table:"buffered|# mini-batch"`
	Mean     *float64 `table:"mean|%.3f"`
	Ready    bool     `table:"ready"`
	shown    string   `table:"state"`
	Note     string   `table:""`
}

type reason string

func written[T any](rows []T) string {
	var b strings.Builder
	Rows(&b, rows)
	return b.String()
}

func TestRows(t *testing.T) {
	mean := 2.0
	machines := []machine{
		{Name: "n0", place: place{"r1"}, LastSeen: 1.25, Busy: 0.25, Cores: 3, URLs: []string{"a", "b"},
			Reasons: []reason{"old", "slow"}, Groups: []int64{7}, Batches: 1, Mean: &mean, Ready: true, shown: "alive",
			Note: "a note"},
		{Name: "n\t1"},
	}
	const headings = "node\track\tlast seen\tbusy\tcores\tat\treasons\trow groups\tbuffered\tmean\tready\tstate"
	second := `"n\t1"` + "\t-\t0.0 s ago\t0%\t-\t-\t-\t0\t0 mini-batches\t-\tfalse\t-"
	assert.Equal(t, headings+"\t\n"+
		"n0\tr1\t1.2 s ago\t25%\t3\ta, b\told slow\t1\t1 mini-batch\t2.000\ttrue\talive\ta note\n"+
		second+"\t\n", written(machines))
	assert.Equal(t, headings+"\n"+second+"\n", written(machines[1:]), "no row has a note")
	assert.Equal(t, headings+"\n", written(machines[:0]))
}
