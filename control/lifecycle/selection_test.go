package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestSelected: an edition gets its digest with its selection, whether it is the first one or a further one, and a
// state that was handed out before does not change.
func TestSelected(t *testing.T) {
	m := New(Config{})
	j := m.Add(Terms{ID: "a", Name: "a", Submitted: scriptStart, Ranks: 1, Epochs: 1, Follow: true},
		Submission(record.Edition{}))
	before := j.Storing(scriptStart)
	j.Selected(1, dataset.Digest{9}, record.Selection{}) // there is none of this number
	assert.False(t, j.Unwritten())
	assert.False(t, j.Uses(dataset.Digest{9}))

	first := record.Selection{Digest: dataset.Digest{2}, Bytes: 90, Pieces: 1}
	j.Selected(0, dataset.Digest{1}, first)
	assert.True(t, j.Unwritten(), "a later leader need not make it again")
	assert.True(t, j.Uses(dataset.Digest{1}))
	assert.Equal(t, &first, j.Editions()[0].Selection)
	assert.Zero(t, before.Editions[0].Digest)

	j.Prepared()
	j.Measured(nil, 0, j.State().Allocation)
	j.Committed()
	j.EpochDelivered(0, scriptStart.Add(time.Second))
	j.Confirmed(scriptStart.Add(time.Second))
	j.PartitionsFound(dataset.Digest{})
	assert.Equal(t, 1, j.Preparing())
	j.Selected(1, dataset.Digest{3}, record.Selection{Digest: dataset.Digest{4}})
	assert.True(t, j.Uses(dataset.Digest{3}))
	assert.Len(t, j.Editions(), 1)
	assert.Equal(t, dataset.Digest{1}, j.Editions()[0].Digest)
}
