package dataset

import "fmt"

// Order says in which sequence a consumer gets the mini-batches of a plan. It is not part of the plan, nor of a job's
// digest.
type Order uint8

const (
	// Fastest delivers mini-batches as the drives finish them (the default): no drive waits for another.
	Fastest Order = iota
	// Deterministic delivers mini-batches in the plan's order: the same sequence in every run.
	Deterministic
)

// String returns fastest or deterministic.
func (o Order) String() string { return nameOf(uint8(o), orderNames[:]) }

// ParseOrder reads fastest or deterministic. The empty string is Fastest. The error wraps ErrOptions.
func ParseOrder(s string) (Order, error) {
	if s == "" {
		return Fastest, nil
	}
	for i, n := range orderNames {
		if s == n {
			return Order(i), nil
		}
	}
	return 0, fmt.Errorf("%w: order %q, want fastest or deterministic", ErrOptions, s)
}

var orderNames = [...]string{"fastest", "deterministic"}
