package record

// Phase is the stage of a job's life. Package lifecycle has the table of which phase follows which.
type Phase string

// The phases.
const (
	Preparing Phase = "preparing" // nodes get the program
	Measuring Phase = "measuring" // P of the drives
	Running   Phase = "running"   // leases are granted
	Waiting   Phase = "waiting"   // for an event elsewhere, which State.Why names
	Done      Phase = "done"      // every owned mini-batch of every epoch is acknowledged
	Cancelled Phase = "cancelled" // by a user
	Failed    Phase = "failed"    // State.Why has the reason
	Abandoned Phase = "abandoned" // no rank called for as long as the job, or the operator, allows
)

// Ended reports whether a job in this phase is over.
func (p Phase) Ended() bool { return p == Done || p == Cancelled || p == Failed || p == Abandoned }

// Begun reports whether launchers may attach.
func (p Phase) Begun() bool { return p == Running || p == Waiting }

// Words is the phase as users read it.
func (p Phase) Words(why string) string {
	if why == "" {
		return string(p)
	}
	return string(p) + ": " + why
}
