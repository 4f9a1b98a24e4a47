// Package deploy keeps a node's drives at the FPGA images that its configuration names: it rolls an image out, one
// drive after another, behind a health gate, and finds the drives that have drifted from their image.
//
// # Overview
//
//	d := deploy.New(deploy.Options{Image: bytes, Gate: func(ctx context.Context, d deploy.Drive) error { ... }})
//	result, err := d.Run(ctx, drives)
//	drifted := deploy.Drift(ctx, drives, id)
//
// A rollout looks at each drive in turn. A drive that runs the image already is only checked by the gate. Any other
// drive is drained (when Drive.Drain returns, nothing uses the drive), gets the image into the free slot of its field
// pair, tests it, activates it, must pass the gate, and is given work again (Drive.Resume). When a step fails, the
// drive goes back to the image that it ran before, is given work again, and the rollout stops: later drives stay as
// they are, and earlier ones keep the new image. With Policy.Failures the rollout goes on past some failures. A drive
// that cannot be brought back stays drained and ends as stuck.
//
// The order of the steps is a pure state machine (state.go): an event says what happened, and the answer is the next
// effect. A rollout over several drives (rollout.go) is pure, too; execution.go alone acts. Nothing is stored, because
// the drives know the images that they run: an interrupted rollout is finished by running it again.
//
// # Concurrency
//
// A Deployer does one rollout at a time; a second Run meanwhile fails with [ErrRunning]. The goroutine of Run calls the
// callbacks, one after another.
//
// # Errors
//
// Run's error joins a *[DriveError] for each drive that failed: the drive, the step, and the cause. Where the drive
// refused the image, the cause wraps an *image.LoadError with both interface UUIDs.
//
// # Debugging
//
// Options.Logger has every change of a drive's state. `millrace image list URI` shows what a drive holds and what it
// refused. docs/architecture.md has a picture of the states.
package deploy
