package dataset

// SplitCounter counts the splits of a plan of which every mini-batch is done. It has one user at a time.
type SplitCounter struct {
	plan *Plan
	left []uint64 // fragments of each split that are not done
	done int
}

// NewSplitCounter begins with no mini-batch done.
func NewSplitCounter(p *Plan) *SplitCounter {
	c := &SplitCounter{plan: p, left: make([]uint64, p.Splits())}
	for i := range c.left {
		c.left[i] = p.firstFragments[i+1] - p.firstFragments[i]
	}
	return c
}

// Add counts a mini-batch as done, each of which comes once. The error wraps ErrNumber.
func (c *SplitCounter) Add(number uint64) error {
	mb, err := c.plan.MiniBatch(number)
	if err != nil {
		return err
	}
	for i := range mb.Fragments {
		at, err := c.plan.Fragment(mb.FirstFragment + uint64(i))
		if err != nil {
			return err
		}
		if c.left[at.Split]--; c.left[at.Split] == 0 {
			c.done++
		}
	}
	return nil
}

// Done returns how many splits are done.
func (c *SplitCounter) Done() int { return c.done }
