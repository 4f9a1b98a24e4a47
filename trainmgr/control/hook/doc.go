// Package hook runs an operator's command that starts and stops workers without data.
//
// # Overview
//
// The control plane decides how many workers there are to be (package autoscale); the way to start a worker depends
// on where it runs: a container, a systemd unit, a batch system. So `control run --worker-hook COMMAND` names a
// shell command, which gets its task in its environment:
//
//	MILLRACE_WORKER_ACTION   start or stop
//	MILLRACE_WORKER_COUNT    how many workers, in decimal
//	MILLRACE_WORKER_NAMES    their names, with spaces between them: a worker that starts joins under its name
//	MILLRACE_WORKER_JOBS     ids of the jobs that want workers, with spaces between them; may be empty
//	MILLRACE_WORKER_CONTROL  URL of the control plane
//
// The command ends when the workers have been asked to start or to end, with status 0. It may be called again for the
// same names: to start a worker that runs, and to stop one that is gone, has to succeed.
//
// # Concurrency
//
// A Hook may be used from any goroutine. It runs at most Options.Concurrent commands at once.
//
// # Errors
//
// An error of Run names the action, says how often the command was tried and how it ended, and has the last line that
// it wrote to its standard error. [ErrTimeout] is among the causes where the command was killed because it took too
// long.
//
// # Debugging
//
// Every run is logged with its action, names and time, and what the command wrote.
package hook
