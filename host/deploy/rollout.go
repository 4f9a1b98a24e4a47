package deploy

// rollout is the machine over all drives: an event gives the result of the last action, and the answer is the next
// action. It handles one drive after another.
type rollout struct {
	states   []State
	current  int // the drive whose turn it is
	failures int // drives that ended badly
	allowed  int // failures after which the rollout goes on
	stopping bool
}

// action is an effect and the drive that it concerns.
type action struct {
	drive  int
	effect effect
}

// start begins with the first drive. The effect is effectNone if there is none.
func (r *rollout) start() (action, error) { return r.next(eventBegin) }

// next takes the result of the last action and returns the next action. Its effect is effectNone when the rollout is
// over.
func (r *rollout) next(on event) (action, error) {
	for r.current < len(r.states) {
		to, effect, err := next(r.states[r.current], on)
		if err != nil {
			return action{}, err
		}
		r.states[r.current] = to
		if !to.Ended() {
			return action{r.current, effect}, nil
		}
		if to.Bad() {
			r.failures++
		}
		if r.failures > r.allowed {
			r.stopping = true
		}
		r.current++
		on = eventBegin
		if r.stopping {
			on = eventStop
		}
	}
	return action{}, nil
}

// end makes the rollout end with the drive in progress.
func (r *rollout) end() { r.stopping = true }
