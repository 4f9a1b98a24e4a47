package control

import (
	"fmt"
	"slices"
)

// phase is where a job stands.
type phase string

// The phases.
const (
	preparing phase = "preparing" // nodes get the program
	measuring phase = "measuring" // P of the drives
	running   phase = "running"   // leases are granted
	waiting   phase = "waiting"   // for something that has to happen elsewhere: Why says what
	done      phase = "done"      // every owned mini-batch of every epoch is acknowledged
	cancelled phase = "cancelled" // by a user
	failed    phase = "failed"    // Why says how
)

// transitions lists what may follow what. Nothing follows an ended job.
var transitions = map[phase][]phase{
	"":        {preparing},
	preparing: {measuring, failed, cancelled},
	measuring: {running, failed, cancelled, preparing}, // preparing again: another leader took over
	running:   {waiting, done, failed, cancelled},
	waiting:   {running, done, failed, cancelled},
}

// ended reports whether a job in this phase is over.
func (p phase) ended() bool { return p != "" && len(transitions[p]) == 0 }

// begun reports whether launchers may attach.
func (p phase) begun() bool { return p == running || p == waiting }

// follow returns an error unless to may follow p.
func (p phase) follow(to phase) error {
	if !slices.Contains(transitions[p], to) {
		return fmt.Errorf("a job that is %s cannot become %s", p, to)
	}
	return nil
}

// words is the phase as users read it.
func (p phase) words(why string) string {
	if why == "" {
		return string(p)
	}
	return string(p) + ": " + why
}
