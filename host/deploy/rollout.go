package deploy

// rollout is the machine over all drives: events in, effects out, one drive at a time.
type rollout struct {
	states   []State
	at       int // the drive whose turn it is
	failures int // drives that ended badly
	allowed  int // of them, before the rollout stops
	stopping bool
}

// order is what to do, with which drive.
type order struct {
	drive int
	do    effect
}

// start begins with the first drive. The order is nothing when there is none.
func (r *rollout) start() (order, error) { return r.next(begin) }

// next takes what came of the last order and returns the next; its effect is nothing when the rollout is over.
func (r *rollout) next(on event) (order, error) {
	for r.at < len(r.states) {
		to, do, err := transition(r.states[r.at], on)
		if err != nil {
			return order{}, err
		}
		r.states[r.at] = to
		if !to.Ended() {
			return order{r.at, do}, nil
		}
		if to.Bad() {
			r.failures++
		}
		if r.failures > r.allowed {
			r.stopping = true
		}
		r.at++
		on = begin
		if r.stopping {
			on = stop
		}
	}
	return order{}, nil
}

// end makes the rollout end with the drive whose turn it is.
func (r *rollout) end() { r.stopping = true }
