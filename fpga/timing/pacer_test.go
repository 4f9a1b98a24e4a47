package timing

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/image"
)

// rowsOfExample is the workload of TestExampleByHand.
func rowsOfExample() Workload { return Workload{Dense: 100, Sparse: 10, Mean: 4, IDBytes: 8} }

// imageOf returns an image with parameters.
func imageOf(p *image.Parameters) *image.Image { return &image.Image{Spec: image.Spec{Parameters: p}} }

// drive runs slices of 1000 rows through a pacer with a number of commands at a time, each for hostTime, and returns
// the rows a second of its clock.
func drive(t *testing.T, p *Pacing, img *image.Image, commands, slices int, hostTime time.Duration) (float64, error) {
	t.Helper()
	return driveRegion(t, p.NewPacer(1), img, rowsOfExample().Work(1000), commands, slices, hostTime)
}

// driveRegion does the same with a pacer, and slices of some work.
func driveRegion(t *testing.T, r *Pacer, img *image.Image, work Work, commands, slices int, hostTime time.Duration,
) (float64, error) {
	c := r.pacing.Clock()
	thread := make(chan struct{}, 1)
	left := make(chan struct{}, slices)
	for range slices {
		left <- struct{}{}
	}
	close(left)
	began := c.Now()
	ended := make(chan error, commands)
	for range commands {
		go func() {
			for range left {
				came := c.Now()
				thread <- struct{}{}
				time.Sleep(hostTime)
				_, end, err := r.Take(Execution{Image: img, Work: work, Came: came, Host: hostTime})
				<-thread
				if err == nil {
					err = r.Wait(t.Context(), end)
				}
				if err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	var err error
	for range commands {
		err = errors.Join(err, <-ended)
	}
	return float64(slices) * 1000 / c.Now().Sub(began).Seconds(), err
}

// TestARunningDriveHasTheModelsP: with two commands at a time, dilated or not, with double buffers or without.
func TestARunningDriveHasTheModelsP(t *testing.T) {
	for name, change := range map[string]func(*image.Parameters){
		"double buffers":      func(*image.Parameters) {},
		"one stage at a time": func(p *image.Parameters) { p.Buffers = figure(1) },
		"by way of memory":    func(p *image.Parameters) { p.Chained = figure(0) },
		"half the clock":      func(p *image.Parameters) { p.Clock = figure(50_000) },
	} {
		for _, dilate := range []int{1, 20} {
			synctest.Test(t, func(t *testing.T) {
				params := exampleImage()
				change(params)
				want := OfImage(SmartSSD(), params).Batch(rowsOfExample(), 1000).RowsPerSecond(false)
				p := NewPacing(ModeImage, dilate)
				got, err := drive(t, p, imageOf(params), 2, 100, 100*time.Microsecond)
				require.NoError(t, err)
				// The first command has nothing before it that its execution overlaps with.
				assert.InEpsilon(t, want, got, 1e-4, "%s, %d", name, dilate)
				require.NoError(t, p.Err())
				report := p.Report()
				assert.Equal(t, Report{Timing: ModeImage, Modelled: true, Dilate: dilate, Bound: StageHash,
					HostShare: report.HostShare}, report)
				assert.InDelta(t, 1e-4*want/1000/float64(dilate), report.HostShare, 1e-3)
			})
		}
	}
}

// TestRegionsShareTheFlash runs regions whose slices need more or less of the way from the flash than of their own
// units. Their units add up, and the flash is shared by weight.
func TestRegionsShareTheFlash(t *testing.T) {
	for name, c := range map[string]struct {
		weights []int
		flash   float64   // the flash's time for a slice, in that of the region's units
		want    []float64 // rates, in those that a region's units have
	}{
		"units bind":              {[]int{1, 1, 1}, 0.2, []float64{1, 1, 1}},
		"four fill the flash":     {[]int{1, 1, 1, 1}, 0.5, []float64{0.5, 0.5, 0.5, 0.5}},
		"the flash binds one":     {[]int{1}, 2, []float64{0.5}},
		"by weight":               {[]int{2, 1, 1}, 1, []float64{0.5, 0.25, 0.25}},
		"what one needs not":      {[]int{6, 1}, 0.6, []float64{1, 2. / 3}},
		"what a light one cannot": {[]int{1, 6}, 0.8, []float64{0.25, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			work := rowsOfExample().Work(1000)
			own := OfImage(SmartSSD(), exampleImage()).Times(work).Hash
			work.FlashBytes = c.flash * own * AssumedP2P
			p := NewPacing(ModeImage, 1)
			rates := make([]float64, len(c.weights))
			var done sync.WaitGroup
			for i, r := range p.NewPacers(1, c.weights) {
				slices := int(400 * c.want[i]) // all end at about the same time
				done.Go(func() {
					var err error
					rates[i], err = driveRegion(t, r, imageOf(exampleImage()), work, 2, slices, time.Microsecond)
					assert.NoError(t, err)
				})
			}
			done.Wait()
			for i, want := range c.want {
				assert.InEpsilon(t, want*1000/own, rates[i], 0.03, "%s: region %d", name, i)
			}
			require.NoError(t, p.Err())
			switch slices.Min(c.want) {
			case 1:
				assert.Equal(t, StageHash, p.Report().Bound, name)
			case slices.Max(c.want):
				assert.Equal(t, StageMove, p.Report().Bound, name)
			}
		})
	}
}

// TestRegionsWithoutDoubleBuffers: the stages of a region follow one another, and its flash is that of all.
func TestRegionsWithoutDoubleBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		params := exampleImage()
		params.Buffers = figure(1)
		work := rowsOfExample().Work(1000)
		times := OfImage(SmartSSD(), params).Times(work)
		work.FlashBytes = times.Serial() * AssumedP2P // as long as everything else
		alone := OfImage(SmartSSD(), params).Times(work).Period(false)
		p := NewPacing(ModeImage, 1)
		rates := make([]float64, 4)
		var done sync.WaitGroup
		for i, r := range p.NewPacers(1, []int{1, 1, 1, 1}) {
			done.Go(func() {
				var err error
				rates[i], err = driveRegion(t, r, imageOf(params), work, 2, 200, time.Microsecond)
				assert.NoError(t, err)
			})
		}
		done.Wait()
		for _, rate := range rates {
			assert.InEpsilon(t, 1000/(4*work.FlashBytes/AssumedP2P), rate, 0.03)
			assert.Less(t, rate, 1000/alone)
		}
	})
}

// TestASharedStageDoesAllWork adds work of random regions at random times, and checks that nothing is done before it
// came or faster than the stage is, and that when is right if nothing comes.
func TestASharedStageDoesAllWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 16), 1, 7).Draw(t, "weights")
		s, now, all := newSharedStage(weights), time.Unix(1, 0), 0.0
		first := now
		for range rapid.IntRange(1, 30).Draw(t, "slices") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "pause")) * time.Millisecond)
			region := rapid.IntRange(0, len(weights)-1).Draw(t, "region")
			work := float64(rapid.IntRange(0, 1000).Draw(t, "ms")) / 1000
			all += work
			target := s.addWork(region, now, work)
			end, ok := s.endOfWork(region, target)
			if !ok {
				require.Zero(t, work)
				continue
			}
			require.GreaterOrEqual(t, end.Sub(now).Seconds(), work-1e-8)
			ahead := sharedStage{weights: weights, left: slices.Clone(s.left), done: slices.Clone(s.done), at: s.at}
			ahead.addWork(region, end.Add(time.Microsecond), 0)
			_, ok = ahead.endOfWork(region, target)
			require.False(t, ok, "it is done when it was said to be")
			var done float64
			for _, d := range s.done {
				done += d
			}
			require.LessOrEqual(t, done, now.Sub(first).Seconds()+1e-8)
		}
		s.addWork(0, now.Add(time.Hour), 0)
		var done float64
		for _, d := range s.done {
			done += d
		}
		require.InDelta(t, all, done, 1e-8)
	})
}

// TestPrestosDesignsDoNotAskTheImage: and a slice takes what they say.
func TestPrestosDesignsDoNotAskTheImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for mode, device := range map[Mode]Device{ModeSmartSSD: SmartSSD(), ModeU280: U280()} {
			p := NewPacing(mode, 1)
			w := rowsOfExample()
			came := p.Clock().Now()
			r := p.NewPacer(1)
			takes, end, err := r.Take(Execution{Work: w.Work(100_000), Came: came})
			require.NoError(t, err)
			assert.InDelta(t, device.Batch(w, 100_000).Period(false), takes.Seconds(), 1e-9)
			assert.Equal(t, takes, r.expectedEnd(end).Sub(came))
		}
	})
	w := rowsOfExample()
	small, large := SmartSSD().Batch(w, 1000), U280().Batch(w, 1000)
	assert.InEpsilon(t, small.Hash/2, large.Hash, 1e-9, "twice the units")
	assert.InEpsilon(t, small.Move, large.Move, 1e-9)
	assert.Less(t, large.DDR, small.DDR)
}

// TestASliceWithoutAnother: a command that comes to an idle drive begins when it comes.
func TestASliceWithoutAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacing(ModeSmartSSD, 1)
		r := p.NewPacer(1)
		for range 3 {
			came := p.Clock().Now()
			takes, end, err := r.Take(Execution{Work: rowsOfExample().Work(1000), Came: came})
			require.NoError(t, err)
			require.NoError(t, r.Wait(t.Context(), end))
			assert.Equal(t, takes, p.Clock().Now().Sub(came))
			require.NoError(t, p.Clock().Wait(t.Context(), time.Second))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, r.Wait(ctx, &End{own: p.Clock().Now().Add(time.Hour)}), context.Canceled)
	})
}

// TestASlowHost: a machine that is slower than the model is an error, which names a factor with which it is none.
func TestASlowHost(t *testing.T) {
	img := imageOf(exampleImage())
	const host = 5 * time.Millisecond // the model: 800.4 us
	var slow *SlowHostError
	synctest.Test(t, func(t *testing.T) {
		p := NewPacing(ModeImage, 2)
		_, err := drive(t, p, img, 2, 10_000, host)
		require.ErrorAs(t, err, &slow)
		assert.Equal(t, 2, slow.Dilate)
		assert.InEpsilon(t, 5/(2*0.8004), float64(slow.Host)/float64(slow.Model), 0.01)
		assert.Contains(t, err.Error(), "--dilate 10")
		require.ErrorAs(t, p.Err(), &slow, "the error stays")
		_, _, err = p.NewPacer(1).Take(Execution{Image: img})
		require.Error(t, err, "for every drive of the process")
	})
	synctest.Test(t, func(t *testing.T) {
		p := NewPacing(ModeImage, slow.Needed)
		_, err := drive(t, p, img, 2, 1000, host)
		require.NoError(t, err)
		require.NoError(t, p.Err())
	})
}

// TestASlowSliceIsNoError: a machine that pauses for less than a second, and is fast enough on the whole.
func TestASlowSliceIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		img := imageOf(exampleImage())
		for pause, ok := range map[time.Duration]bool{900 * time.Millisecond: true, 1100 * time.Millisecond: false} {
			p := NewPacing(ModeImage, 3)
			r := p.NewPacer(1)
			take := func(host time.Duration) error {
				_, _, err := r.Take(Execution{Image: img, Work: rowsOfExample().Work(1000), Came: p.Clock().Now(), Host: host})
				return err
			}
			if err := take(pause); !ok {
				require.ErrorAs(t, err, new(*SlowHostError))
				continue
			}
			require.ErrorAs(t, p.Err(), new(*SlowHostError), "until now it has been too slow on the whole")
			for range 1000 {
				require.NoError(t, take(time.Millisecond))
			}
			require.NoError(t, p.Err())
		}
	})
}

// TestWhatTheModelDoesNotKnow: an image without parameters, one without a unit, a text source.
func TestWhatTheModelDoesNotKnow(t *testing.T) {
	lacking := exampleImage()
	lacking.Units = lacking.Units[:1]
	for name, c := range map[string]struct {
		x    Execution
		says string
	}{
		"parameters": {Execution{Image: imageOf(nil)}, "states no parameters"},
		"unit":       {Execution{Image: imageOf(lacking), Work: rowsOfExample().Work(1)}, "unit sigrid_hash"},
		"text":       {Execution{Image: imageOf(exampleImage()), Text: true}, "unit text"},
	} {
		p := NewPacing(ModeImage, 1)
		_, _, err := p.NewPacer(1).Take(c.x)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorIs(t, p.Err(), err, name)
	}
}

// TestModes: names, and the words of reports.
func TestModes(t *testing.T) {
	for _, name := range []string{"native", "image", "smartssd", "u280"} {
		m, err := ParseMode(name)
		require.NoError(t, err)
		assert.Equal(t, name, string(m))
	}
	_, err := ParseMode("fast")
	require.ErrorIs(t, err, ErrMode)
	assert.Equal(t, "native: as fast as this machine", (*Pacing)(nil).Report().String())
	assert.Equal(t, "u280, modelled: no board ran; rates are the model's, bound by move; times were 20 times as long; "+
		"this machine was busy for 25 % of them",
		Report{Timing: ModeU280, Modelled: true, Dilate: 20, Bound: StageMove, HostShare: 0.25}.String())
	assert.NotContains(t, NewPacing(ModeU280, 1).Report().String(), "bound", "nothing has run")
}
