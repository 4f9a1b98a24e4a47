package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

// Retry says how often and when a failed request is repeated. The zero value works.
type Retry struct {
	Attempts int           // One request has at most these attempts; 0 is 7.
	First    time.Duration // the longest wait before the second attempt, doubled before each further one; 0 is 100 ms
	Longest  time.Duration // the longest wait, if the server does not ask for more; 0 is 10 s
	Timeout  time.Duration // One attempt takes at most this time; 0 is a minute.
	// Wait waits until d has passed or ctx ends; nil uses a timer.
	Wait func(ctx context.Context, d time.Duration) error
	// Random returns a number in [0, 1) that spreads the waits of many readers; nil means that of package rand.
	Random func() float64
	// Waited is called before each wait, if it is not nil.
	Waited func(d time.Duration)
}

func (p Retry) withDefaults() Retry {
	if p.Attempts <= 0 {
		p.Attempts = 7
	}
	if p.First <= 0 {
		p.First = 100 * time.Millisecond
	}
	if p.Longest <= 0 {
		p.Longest = 10 * time.Second
	}
	if p.Timeout <= 0 {
		p.Timeout = time.Minute
	}
	if p.Wait == nil {
		p.Wait = wait.Sleep
	}
	if p.Random == nil {
		p.Random = rand.Float64
	}
	return p
}

// errAttemptTimeout ends one attempt.
var errAttemptTimeout = errors.New("no answer in time")

// Do calls attempt until it succeeds, fails with an error that is not Temporary, or has failed Retry.Attempts times.
// The wait before an attempt is a random part of an interval that doubles, and not less than the time that the server
// asked for.
func (p Retry) Do(ctx context.Context, name string, attempt func(ctx context.Context) error) error {
	p = p.withDefaults()
	intervals := wait.Backoff{First: p.First, Longest: p.Longest}
	for i := 1; ; i++ {
		err := p.attemptOnce(ctx, name, attempt)
		if err == nil {
			return nil
		}
		after, temporary := Temporary(err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !temporary:
			return err
		case i == p.Attempts:
			return fmt.Errorf("%w (given up after %d attempts)", err, i)
		}
		pause := max(time.Duration(p.Random()*float64(intervals.Next())), min(after, MaxRetryAfter))
		if p.Waited != nil {
			p.Waited(pause)
		}
		if err := p.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// attemptOnce makes one attempt. If the attempt's time ends, the error is an *UnreachableError.
func (p Retry) attemptOnce(ctx context.Context, name string, attempt func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, p.Timeout, errAttemptTimeout)
	defer cancel()
	err := attempt(limited)
	if errors.Is(err, errAttemptTimeout) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return &UnreachableError{Name: name, Err: fmt.Errorf("%w: %v", errAttemptTimeout, p.Timeout)}
	}
	return err
}
