// Package hook runs an operator's command that starts and stops workers without data.
//
// # Overview
//
// The control plane decides how many workers run (package autoscale). The way to start a worker depends on where it
// runs: in a container, as a systemd unit, or in a batch system. So `control run --worker-hook COMMAND` names a
// shell command, which gets its task in its environment:
//
//	MILLRACE_WORKER_ACTION   start or stop
//	MILLRACE_WORKER_COUNT    how many workers, in decimal
//	MILLRACE_WORKER_NAMES    their names, with spaces between them: a worker that starts joins under its name
//	MILLRACE_WORKER_JOBS     ids of the jobs that want workers, with spaces between them; may be empty
//	MILLRACE_WORKER_CONTROL  URL of the control plane
//
// The command asks the workers to start or to end, and then ends with status 0. The control plane may run it again for
// the same names, after a failure or after a change of leader. The command must also succeed if a worker that it starts
// runs already, or if a worker that it stops is gone.
//
// # Concurrency
//
// A Hook may be used from any goroutine. It runs at most Options.Concurrent commands at once.
//
// # Errors
//
// An error of Run names the action, the number of attempts and how the command ended, and has the last line that the
// command wrote to its standard error. The error wraps [ErrTimeout] if the command was killed because it took too long.
//
// # Debugging
//
// Every execution is logged with its action, its names, its time, and the output of the command.
package hook
