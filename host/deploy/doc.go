// Package deploy keeps a node's drives at the images that its configuration names: it rolls an image out, one drive at a time, behind a health gate,
// and tells which drives have drifted.
//
// # Overview
//
//	d := deploy.New(deploy.Options{Image: bytes, Gate: func(ctx context.Context, d deploy.Drive) error { ... }})
//	report, err := d.Run(ctx, drives)
//	drifted := deploy.Drift(ctx, drives, id)
//
// A rollout looks at each drive in turn. One that runs the image already is only checked. Any other is drained (Drive.Drain: nothing
// holds it when that returns), gets the image into the free slot of its field pair, tests it, activates it, must pass the gate, and is
// given work again (Drive.Resume). When a step fails, the drive goes back to the image that it ran before, is given work again, and the
// rollout stops; the drives behind it are left alone, those before it keep the new image. Policy.Failures lets it go on past some
// failures. A drive that cannot be brought back stays drained and is reported as stuck.
//
// The order of the steps is a pure state machine (machine.go), fed with what happened and answering with what to do next; rollouts over several
// drives (rollout.go) are too. Only deploy.go acts. Nothing is written down: the drives themselves know what they run, so a rollout that
// was cut off is finished by running it again.
//
// # Concurrency
//
// A Deployer does one rollout at a time; a second Run meanwhile fails with [ErrRunning]. Callbacks are called by the goroutine of Run, one after
// another.
//
// # Errors
//
// Run's error is a *[Error] for each drive that failed, joined: the drive, the step, and the cause, which holds an *image.LoadError where the
// drive refused, with both interface UUIDs.
//
// # Debugging
//
// Options.Logger has every change of state. `millrace image list URI` shows what a drive holds and what it refused.
package deploy
