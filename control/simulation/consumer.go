package simulation

import (
	"maps"

	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/sdk/dataset"
)

// checkAttachment compares the answer to an Attach call with the model, and with the acknowledgements that leaders have
// confirmed. The trainer of a job without tokens continues behind the acknowledged mini-batches: the model forgets the
// steps whose acknowledgements were lost, and gets their mini-batches again.
func (c *consumer) checkAttachment(by string, e *epoch, at machine.AttachAnswer) {
	w, share := c.job.world, e.shares[c.rank]
	acknowledged := e.progress(at.Token.Acknowledged())
	if n, found := c.lacks(e, acknowledged); found {
		w.fail("%s learns that mini-batch %d of epoch %d is acknowledged, and never trained it", by, n, e.number)
		return
	}
	if len(at.Owned) > 0 && (at.Owned[0].From != share.From || at.Owned[len(at.Owned)-1].To != share.To) {
		w.fail("%s owns %v of epoch %d, and its share is %v", by, at.Owned, e.number, share)
	}
	if c.job.tokens {
		return
	}
	c.checkKnown("the answer to "+by, at.Token)
	for n := range c.model[e.number] {
		c.model[e.number][n] = c.model[e.number][n] && acknowledged.Acked(uint64(n))
	}
	maps.DeleteFunc(c.model, func(epoch uint64, _ []bool) bool { return epoch > e.number })
}

// checkToken checks that a sealed token contains only mini-batches that the model was trained with.
func (c *consumer) checkToken(by string, e *epoch, t dataset.Token) {
	w := c.job.world
	if t.Epoch != e.number || t.Job != e.edition.digest {
		w.fail("%s is in epoch %d and gets a token of epoch %d", by, e.number, t.Epoch)
		return
	}
	if n, found := c.lacks(e, e.progress(t.Acknowledged())); found {
		w.fail("%s was not trained with mini-batch %d of epoch %d, and its token has it", by, n, e.number)
	}
}

// keep keeps a token with the model. The token must contain every mini-batch that the model was trained with.
func (c *consumer) keep(by string, e *epoch, t dataset.Token) {
	has, share := e.progress(t.Acknowledged()), e.shares[c.rank]
	for n := share.From; n < share.To; n++ {
		if c.model.has(e.number, n) && !has.Acked(n) {
			c.job.world.fail("%s was trained with mini-batch %d of epoch %d, and its token lacks it", by, n, e.number)
			return
		}
	}
	c.saved, c.token = c.model.clone(), &t
}
