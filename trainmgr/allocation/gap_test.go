package allocation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFillGap(t *testing.T) {
	two := []Worker{{"a", 100, 500}, {"b", 100, 500}}
	for name, c := range map[string]struct {
		t         float64
		holders   []Worker
		limit     int
		rows      int64
		perWorker float64
		want      Gap
	}{
		"holders sustain T":             {200, two, 0, 1000, 50, Gap{}},
		"holders sustain half of it":    {400, two, 0, 1000, 50, Gap{Workers: 4, RowsPerSecond: 200, Rows: 500}},
		"one holder has most rows":      {200, []Worker{{"a", 100, 900}, {"b", 100, 100}}, 0, 1000, 50, Gap{2, 80, 400}},
		"nobody holds a part":           {100, two, 0, 1250, 50, Gap{1, 20, 250}},
		"nobody holds anything":         {100, nil, 0, 1000, 50, Gap{2, 100, 1000}},
		"T is not known":                {0, two, 0, 1000, 50, Gap{}},
		"T is not known, a part is not": {0, two, 0, 1100, 50, Gap{Workers: 1, Rows: 100}},
		"P of a worker is not known":    {400, two, 0, 1000, 0, Gap{1, 200, 500}},
		"one drive at once":             {200, two, 1, 1000, 50, Gap{2, 100, 500}},
		"a drive that was not measured": {200, []Worker{{"a", 100, 500}, {"b", 0, 500}}, 0, 1000, 100, Gap{1, 100, 500}},
		"no rows":                       {200, nil, 0, 0, 100, Gap{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, FillGap(c.t, c.holders, c.limit, c.rows, c.perWorker))
		})
	}
}

// TestTheGapIsFilled: the holders and the workers of the gap sustain T, and one worker fewer would not.
func TestTheGapIsFilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trainer := rapid.Float64Range(1, 1e6).Draw(t, "T")
		perWorker := rapid.Float64Range(1, 1e5).Draw(t, "P")
		var holders []Worker
		held := int64(0)
		for i := range rapid.IntRange(0, 6).Draw(t, "holders") {
			h := Worker{fmt.Sprint(i), rapid.Float64Range(1, 1e5).Draw(t, "P of a holder"),
				rapid.Int64Range(0, 1e6).Draw(t, "rows")}
			held += h.Rows
			holders = append(holders, h)
		}
		rows := held + rapid.Int64Range(0, 1e6).Draw(t, "held by nobody")
		g := FillGap(trainer, holders, 0, rows, perWorker)
		seconds := float64(rows) / trainer
		made := 0.0
		for _, h := range holders {
			made += min(float64(h.Rows), h.RowsPerSecond*seconds)
		}
		enough := func(workers int) bool {
			return made+float64(workers)*perWorker*seconds >= float64(rows)*(1-1e-6)
		}
		require.True(t, enough(g.Workers))
		if g.Workers > 1 {
			require.False(t, made+float64(g.Workers-1)*perWorker*seconds >= float64(rows)*(1+1e-6))
		}
		more := FillGap(2*trainer, holders, 0, rows, perWorker)
		require.GreaterOrEqual(t, more.Workers, g.Workers, "a faster trainer needs no fewer")
	})
}
