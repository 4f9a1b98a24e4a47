package record

import (
	"fmt"
	"slices"
)

// Phase is where a job stands.
type Phase string

// The phases.
const (
	Preparing Phase = "preparing" // nodes get the program
	Measuring Phase = "measuring" // P of the drives
	Running   Phase = "running"   // leases are granted
	Waiting   Phase = "waiting"   // for something that has to happen elsewhere: Why says what
	Done      Phase = "done"      // every owned mini-batch of every epoch is acknowledged
	Cancelled Phase = "cancelled" // by a user
	Failed    Phase = "failed"    // Why says how
	Abandoned Phase = "abandoned" // no rank called for as long as the job, or the operator, allows
)

// transitions lists what may follow what. Nothing follows an ended job.
var transitions = map[Phase][]Phase{
	"":        {Preparing},
	Preparing: {Measuring, Failed, Cancelled},
	Measuring: {Running, Failed, Cancelled, Preparing}, // preparing again: another leader took over
	Running:   {Waiting, Done, Failed, Cancelled, Abandoned},
	Waiting:   {Running, Done, Failed, Cancelled, Abandoned},
}

// Ended reports whether a job in this phase is over.
func (p Phase) Ended() bool { return p != "" && len(transitions[p]) == 0 }

// Begun reports whether launchers may attach.
func (p Phase) Begun() bool { return p == Running || p == Waiting }

// Follow returns an error unless to may follow p.
func (p Phase) Follow(to Phase) error {
	if !slices.Contains(transitions[p], to) {
		return fmt.Errorf("a job that is %s cannot become %s", p, to)
	}
	return nil
}

// Words is the phase as users read it.
func (p Phase) Words(why string) string {
	if why == "" {
		return string(p)
	}
	return string(p) + ": " + why
}
