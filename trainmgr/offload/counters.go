package offload

// Side is a side of the cut between the trainer's machine and the workers elsewhere.
type Side uint8

// The sides.
const (
	Local  Side = iota // the trainer's own CPUs
	Remote             // drives, nodes and workers elsewhere
)

// String returns the side's name.
func (s Side) String() string {
	if s == Remote {
		return "remote"
	}
	return "local"
}

// Counters keep the share of splits that workers elsewhere make at a ratio, by two counters (FastFlow, 5.3). They
// count whole splits, because two sides that share one split decode its pages twice.
//
// If every split is started on the side that Next returned, the count of remote splits differs from the ratio's
// share by less than one split at any moment.
type Counters struct {
	ratio         float64
	local, remote uint64 // splits started since the ratio was set
}

// NewCounters returns counters at zero. The ratio is bounded to 0 to 1.
func NewCounters(ratio float64) *Counters { return &Counters{ratio: shareWithin(ratio)} }

// Ratio returns the ratio that the counters keep.
func (c *Counters) Ratio() float64 { return c.ratio }

// SetRatio changes the ratio. The counters begin at zero again, so that a change acts at once and does not first
// balance the splits that the old ratio made. Setting the same ratio changes nothing.
func (c *Counters) SetRatio(ratio float64) {
	if ratio = shareWithin(ratio); ratio != c.ratio {
		*c = Counters{ratio: ratio}
	}
}

// Restart sets the counters to zero again: a side that was away returned, and does not make up for the splits that
// it missed.
func (c *Counters) Restart() { c.local, c.remote = 0, 0 }

// Next returns the side that is to make the next split: the side whose choice leaves the counters nearer to the
// ratio, and the remote side if both choices are equally near.
func (c *Counters) Next() Side {
	started := float64(c.local + c.remote)
	if float64(c.remote)+0.5 <= float64(c.ratio*(started+1)) {
		return Remote
	}
	return Local
}

// Count counts a split that a side starts.
func (c *Counters) Count(side Side) {
	if side == Remote {
		c.remote++
	} else {
		c.local++
	}
}

// Started returns how many splits each side has started since the ratio was set or the counters restarted.
func (c *Counters) Started() (local, remote uint64) { return c.local, c.remote }
