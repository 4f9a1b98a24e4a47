package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// Step names a step on an image's way to being the active one, in the order in which they are taken.
type Step string

// The steps, in their order.
const (
	StepFormat     Step = "format"     // the container is well formed and whole
	StepInterface  Step = "interface"  // the image needs the interface that the drive has
	StepRevocation Step = "revocation" // neither image nor key is revoked
	StepSignature  Step = "signature"  // the policy takes its signature
	StepIdentifier Step = "identifier" // it is the image that the command named
	StepInUse      Step = "in use"     // the image to be replaced is not in use
	StepStore      Step = "store"      // it is kept
	StepBackend    Step = "backend"    // the drive has its units
	StepSelfTest   Step = "self-test"  // its known answers come out
	StepCommit     Step = "commit"     // the drive remembers it as the one to run
)

// The errors of the steps, beside the sentinels of Parse, ErrUnsigned and ErrRevoked.
var (
	ErrInterface  = errors.New("image needs another interface")
	ErrIdentifier = errors.New("image is not the one that was named")
	ErrStore      = errors.New("image cannot be kept")
	ErrBackend    = errors.New("image needs units that the drive lacks")
	ErrSelfTest   = errors.New("image fails its self-test")
	ErrCommit     = errors.New("image cannot be made the active one")
	ErrInUse      = errors.New("in use")
)

// kindOfStep returns the sentinel of a step; nil where the cause itself is one.
func (s Step) kindOfStep() error {
	switch s {
	case StepInterface:
		return ErrInterface
	case StepRevocation:
		return ErrRevoked
	case StepSignature:
		return ErrUnsigned
	case StepIdentifier:
		return ErrIdentifier
	case StepStore:
		return ErrStore
	case StepBackend:
		return ErrBackend
	case StepSelfTest:
		return ErrSelfTest
	case StepCommit:
		return ErrCommit
	case StepInUse:
		return ErrInUse
	}
	return nil
}

// LoadError says why a drive refused to load or to activate an image: the step, and the interfaces that the image needs
// and that the drive has. The active image has not changed. It wraps the step's sentinel and the cause.
type LoadError struct {
	Step  Step
	Slot  int       // the program slot, 0 if none is concerned
	Image ID        // zero if the bytes could not be read so far
	Want  uuid.UUID // interface that the image needs; zero if the bytes could not be read so far
	Have  uuid.UUID // interface that the drive has; zero if no drive is concerned
	Err   error
}

func (e *LoadError) Error() string {
	var b strings.Builder
	if e.Image != (ID{}) {
		fmt.Fprintf(&b, "image %s ", e.Image.Short())
	} else {
		b.WriteString("image ")
	}
	if e.Slot > 0 {
		fmt.Fprintf(&b, "for slot %d ", e.Slot)
	}
	fmt.Fprintf(&b, "refused at step %s: %v", e.Step, e.Err)
	switch {
	case e.Have == (uuid.UUID{}):
	case e.Have == e.Want: // The interface is not the reason for the refusal.
		fmt.Fprintf(&b, " (the interface of both is %s)", e.Have)
	case e.Want == (uuid.UUID{}):
		fmt.Fprintf(&b, " (the drive's interface is %s, the image's could not be read)", e.Have)
	default:
		fmt.Fprintf(&b, " (the image needs interface %s, the drive has %s)", e.Want, e.Have)
	}
	return b.String()
}

// Unwrap returns the cause and the step's sentinel.
func (e *LoadError) Unwrap() []error {
	if k := e.Step.kindOfStep(); k != nil && !errors.Is(e.Err, k) {
		return []error{e.Err, k}
	}
	return []error{e.Err}
}

// Short is the id's first 16 hexadecimal digits, which are the program unique identifier.
func (id ID) Short() string { return id.String()[:16] }

// BusyError names the hosts that use what would be replaced: they hold memory of the drive, or run on it. It wraps
// ErrInUse.
type BusyError struct {
	Holders []string // qualified names of hosts, sorted; empty if the drive does not name them
	What    string   // what is in use, if it is not the drive
}

func (e *BusyError) Error() string {
	what := e.What
	if what == "" {
		what = "the drive"
	}
	if len(e.Holders) == 0 {
		return what + " is in use: drain it first"
	}
	return fmt.Sprintf("%s is in use by %s: drain it first", what, strings.Join(e.Holders, ", "))
}

// Unwrap returns ErrInUse.
func (e *BusyError) Unwrap() error { return ErrInUse }
