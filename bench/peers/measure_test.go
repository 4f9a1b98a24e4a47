package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
)

// loweredProgram is the program of a model over its columns.
func loweredProgram(t *testing.T, model string) *program.Program {
	t.Helper()
	d, err := generate(t.Context(), t.TempDir(), model, layouts[0], dataOptions{Rows: 1})
	require.NoError(t, err)
	p, err := open(t.Context(), d)
	require.NoError(t, err)
	prog, _, err := lowerModel(p, d)
	require.NoError(t, err)
	return prog
}

func TestLearn(t *testing.T) {
	d := &dataset{}
	require.NoError(t, d.learn(loweredProgram(t, "rm5")))
	assert.Equal(t, int64(500_000), d.Max)
	assert.Len(t, d.Borders, 4096)
	assert.Equal(t, []float64{1, 1e6}, []float64{d.From, d.To})
	require.Error(t, new(dataset).learn(&program.Program{}))
	salted := &program.Program{Columns: []program.Column{
		{Sinks: []program.Sink{{Ops: []program.Op{sigridhash.Op{Salt: 1, Max: 2}}}}}}}
	require.ErrorContains(t, new(dataset).learn(salted), "salt 0")
}

// clockwork is a contender that counts.
type clockwork struct {
	name  string
	log   *[]string
	fails error
}

func (c clockwork) gather(context.Context) (*block, error) { return nil, nil }
func (c clockwork) close() error                           { return nil }
func (c clockwork) measure(context.Context, time.Duration) (sample, error) {
	*c.log = append(*c.log, c.name)
	return sample{Rows: int64(len(*c.log)), Wall: 1, CPU: 0.5}, c.fails
}

func TestAlternate(t *testing.T) {
	var log []string
	samples, err := alternate(t.Context(),
		[]contender{clockwork{name: "a", log: &log}, clockwork{name: "b", log: &log}}, 3, time.Second)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, log)
	l := line{}
	l.fill(samples[0], samples[1])
	assert.True(t, l.Timed)
	assert.Equal(t, spread{Median: 4, Min: 2, Max: 6}, l.RowsPerSecond)
	assert.Equal(t, spread{Median: 8, Min: 4, Max: 12}, l.RowsPerCPUSecond)
	assert.Equal(t, spread{Median: 0.75, Min: 0.5, Max: 5.0 / 6}, l.Ratio)
	_, err = alternate(t.Context(), []contender{clockwork{log: &log, fails: errors.New("broken")}}, 1, time.Second)
	require.ErrorContains(t, err, "broken")
}

func TestSpread(t *testing.T) {
	assert.Equal(t, spread{}, spreadOf(nil))
	assert.Equal(t, spread{Median: 2, Min: 1, Max: 9}, spreadOf([]float64{9, 1, 2}))
	assert.Equal(t, spread{Median: 2.5, Min: 1, Max: 9}, spreadOf([]float64{9, 1, 2, 3}))
}

// slow is a runner whose turns have many blocks.
type slow struct{ blocks int }

func (s *slow) close() error { return nil }
func (s *slow) turn(_ context.Context, take func(int, func() (*block, error)) error) error {
	for range s.blocks {
		time.Sleep(time.Millisecond)
		if err := take(10, nil); err != nil {
			return err
		}
	}
	return nil
}

func TestMeasure(t *testing.T) {
	s, err := linked{runner: &slow{3}}.measure(t.Context(), time.Millisecond)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, s.Rows, int64(10))
	assert.Positive(t, s.Wall)
	s, err = linked{runner: &slow{1_000_000}}.measure(t.Context(), time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, s.Rows)
	assert.Less(t, s.Rows, int64(10_000_000), "a turn that takes too long is cut")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = linked{runner: &slow{1}}.measure(ctx, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
}

// thinker is a runner that plans longer than it works.
type thinker struct {
	slow
	wall float64
}

func (p *thinker) planned() (float64, float64) { return p.wall, 0 }
func (p *thinker) turn(ctx context.Context, take func(int, func() (*block, error)) error) error {
	begin := time.Now()
	time.Sleep(50 * time.Millisecond)
	p.wall += time.Since(begin).Seconds()
	return p.slow.turn(ctx, take)
}

func TestPlanningIsNotCounted(t *testing.T) {
	p := &thinker{slow: slow{1}}
	before := time.Now()
	s, err := linked{runner: p}.measure(t.Context(), time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, s.Wall)
	assert.LessOrEqual(t, s.Wall, time.Since(before).Seconds()-p.wall)
}
