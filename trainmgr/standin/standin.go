// Package standin is a trainer that trains nothing: it takes a mini-batch and is busy for as long as a trainer of a
// given speed would be. Every report says that it stood in for one.
//
// # Concurrency
//
// A Trainer has one user at a time, as a training loop has.
package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/sdk/tensor"
)

// ErrSpeed says that a speed is invalid.
var ErrSpeed = errors.New("stand-in trainer: rows per second must be above 0")

// Trainer takes mini-batches at a fixed speed.
type Trainer struct {
	rowsPerSecond float64
	cpuShare      float64   // A step spends this share on a processor.
	due           time.Time // when the step that runs ends

	// Clock is the clock on which the speed is that of the trainer, also of its processor time; nil: the machine's time.
	Clock *clock.Clock
}

// New returns a trainer that takes rowsPerSecond rows a second.
func New(rowsPerSecond float64) (*Trainer, error) {
	if !(rowsPerSecond > 0) {
		return nil, fmt.Errorf("%w, not %v", ErrSpeed, rowsPerSecond)
	}
	return &Trainer{rowsPerSecond: rowsPerSecond}, nil
}

// NewBusy returns a trainer that takes rowsPerSecond rows a second, and uses a processor for a share of that time, 0
// to 1: a step first uses its part of processor time, however long that takes, and then waits as for a device.
func NewBusy(rowsPerSecond, cpuShare float64) (*Trainer, error) {
	if !(cpuShare >= 0 && cpuShare <= 1) {
		return nil, fmt.Errorf("%w: a share of %v on a processor is not from 0 to 1", ErrSpeed, cpuShare)
	}
	t, err := New(rowsPerSecond)
	if err == nil {
		t.cpuShare = cpuShare
	}
	return t, err
}

// late is how late a timer may wake up on a busy machine, in the machine's time.
const late = 20 * time.Millisecond

// Step is busy with a mini-batch. A step that begins soon after the last one's end goes on from that end, so that a
// timer's lateness does not add up and slow the trainer.
func (t *Trainer) Step(ctx context.Context, mb *tensor.MiniBatch) error {
	seconds := float64(mb.Rows) / t.rowsPerSecond
	if t.cpuShare > 0 {
		if err := spin(ctx, time.Duration(t.cpuShare*seconds*float64(t.Clock.Factor())*float64(time.Second))); err != nil {
			return err
		}
		seconds *= 1 - t.cpuShare
		t.due = t.Clock.Now() // the device does not make up for a delay of the processor
	}
	now := t.Clock.Now()
	if t.due.IsZero() || now.Sub(t.due) > late/time.Duration(t.Clock.Factor()) {
		t.due = now
	}
	t.due = t.due.Add(time.Duration(seconds * float64(time.Second)))
	return t.Clock.Wait(ctx, t.due.Sub(now))
}
