package splits

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestWhereAStreamIsOpened checks that a stream is opened once, at the first mini-batch that is wanted: requests for
// one split come on several connections, in any order.
func TestWhereAStreamIsOpened(t *testing.T) {
	const first = 48 // of a split of 16
	for _, c := range []struct {
		name         string
		waiting      []uint64
		taken        []uint64
		ready        []uint64
		streamed     bool // the stream was open before, and closed at next
		waitedInVain bool
		next         uint64
		want         step
		at           uint64 // where it is opened
	}{
		{name: "the split's first", waiting: []uint64{48}, next: 48, want: stepOpen, at: 48},
		{name: "another is heard of before", waiting: []uint64{49}, next: 49, want: stepDefer},
		{name: "and then the first", waiting: []uint64{49, 51, 48}, next: 49, want: stepOpen, at: 48},
		{name: "nobody wants the first", waiting: []uint64{51, 49}, next: 51, waitedInVain: true, want: stepOpen,
			at: 49},
		{name: "all before were taken", waiting: []uint64{50}, taken: []uint64{48, 49}, next: 50, want: stepOpen,
			at: 50},
		{name: "all before were taken or made", waiting: []uint64{50}, taken: []uint64{48}, ready: []uint64{49},
			next: 50, want: stepOpen, at: 50},
		{name: "one before was not", waiting: []uint64{50}, taken: []uint64{49}, next: 50, want: stepDefer},
		{name: "on from where it was closed", waiting: []uint64{54, 55}, streamed: true, next: 54, want: stepOpen,
			at: 54},
		{name: "a little later", waiting: []uint64{55}, streamed: true, next: 54, want: stepDefer},
		{name: "a little later, and nobody else", waiting: []uint64{55}, streamed: true, waitedInVain: true, next: 54,
			want: stepOpen, at: 55},
		{name: "back again", waiting: []uint64{49}, streamed: true, next: 54, want: stepOpen, at: 49},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &openSplit{
				split: dataset.Split{FirstFragment: first,
					Fragments: 16}, next: c.next, streamed: c.streamed, waitedInVain: c.waitedInVain,
				waiting: map[uint64][]*waiter{}, taken: map[uint64]bool{}, ready: map[uint64]*tensor.MiniBatch{},
			}
			for _, n := range c.waiting {
				s.waiting[n] = []*waiter{{}}
			}
			for _, n := range c.taken {
				s.taken[n] = true
			}
			for _, n := range c.ready {
				s.ready[n] = &tensor.MiniBatch{}
			}
			assert.Equal(t, c.want, s.nextStep())
			if c.want == stepOpen {
				assert.Equal(t, c.at, s.next)
			}
			s.streaming = true
			assert.NotEqual(t, stepDefer, s.nextStep(), "an open stream does not wait")
		})
	}
}

// TestEveryStepHasAName checks that the names are in the order of the steps.
func TestEveryStepHasAName(t *testing.T) {
	for s, name := range map[step]string{stepWait: "wait", stepDefer: "defer", stepOpen: "open", stepMake: "make",
		stepClose: "close", stepEnd: "end"} {
		assert.Equal(t, name, s.String())
	}
}
