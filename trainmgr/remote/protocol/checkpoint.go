package protocol

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// maxTokens is the number of times that a rank requests a token, until the token contains all acknowledgements of the
// trainer.
const maxTokens = 3

// Checkpoint is the state of a checkpoint. The rank makes its acknowledgements durable (Flush), and the control plane
// seals a token of the acknowledgements.
type Checkpoint struct {
	local dataset.Token // The trainer had acknowledged these mini-batches when it requested the checkpoint.
	asked int           // The number of requests to the control plane.
	total uint64        // mini-batches of the epoch
	owned []dataset.Range
}

// BeginCheckpoint begins a checkpoint of a trainer that has acknowledged what the token says.
func BeginCheckpoint(local dataset.Token) *Checkpoint { return &Checkpoint{local: local} }

// AskToken begins an attempt to have the token sealed, under the session.
func (m *Machine) AskToken(c *Checkpoint) (session []byte) {
	c.asked++
	c.total, c.owned = m.epoch.Plan.MiniBatches(), m.epoch.Owned
	return m.session
}

// TokenSealed compares a sealed token with the trainer's acknowledgements at the request, and now. It reports whether
// the token is right. If the token lacks an acknowledgement, because the control plane was restored from a backup, the
// rank acknowledges again, and the caller flushes and requests another token.
func (m *Machine) TokenSealed(c *Checkpoint, sealed, acknowledged dataset.Token, now time.Time) (ok bool, err error) {
	if sealed.Epoch != c.local.Epoch {
		return false, fmt.Errorf("%w: of epoch %d, the rank is in %d", dataset.ErrToken, sealed.Epoch, c.local.Epoch)
	}
	missing, found, err := firstMissing(sealed, c.local.Acknowledged(), c)
	if err != nil {
		return false, err
	}
	if found && c.asked >= maxTokens {
		return false, fmt.Errorf("%w: the ledger does not know that mini-batch %d was acknowledged", dataset.ErrToken,
			missing)
	}
	if found {
		m.acknowledgeAgain(now)
		m.advance(now)
		return false, nil
	}
	// The token must not acknowledge a mini-batch of this rank that the trainer has not acknowledged by now: a trainer
	// that resumed from the token would never get it.
	if acknowledged.Epoch != sealed.Epoch {
		return true, nil // the trainer has finished the token's epoch meanwhile
	}
	never, found, err := firstMissing(acknowledged, dataset.IntersectRanges(sealed.Acknowledged(), c.owned), c)
	if found {
		err = fmt.Errorf("%w: the ledger says that mini-batch %d was acknowledged, and it was not", dataset.ErrToken,
			never)
	}
	return err == nil, err
}

// firstMissing returns the first of the numbers that a token of the checkpoint's epoch does not acknowledge.
func firstMissing(t dataset.Token, numbers []dataset.Range, c *Checkpoint) (missing uint64, found bool, err error) {
	p, err := dataset.Resume(t, c.local.Job, c.total)
	if err != nil {
		return 0, false, err
	}
	for _, r := range numbers {
		if n, ok := p.Pending(r.From); ok && n < r.To {
			return n, true, nil
		}
	}
	return 0, false, nil
}
