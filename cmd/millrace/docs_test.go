package main

import "testing"

// introduction stands above the commands.
const introduction = "# Commands\n\n" +
	"Written from the command tree by `MILLRACE_UPDATE=1 go test -run Documented ./cmd/millrace`, and checked " +
	"against it by `make test`. [Below](#commands-that-measure) are the commands of the program millrace-bench, which " +
	"`millrace bench` runs.\n\n" +
	"Results go to standard output, progress and errors to standard error; an error is one line, of a pipeline " +
	"one a cause. Exit status: 0 done, 1 failed, 2 wrong\nflags or arguments, 141 nobody reads the output any more " +
	"(as behind head). Ctrl-C, SIGTERM and the end of a terminal have a command end in order; a second Ctrl-C " +
	"ends it at once. " +
	"In JSON, keys are snake_case and end in their unit; the reports of measurements, jobs, plans " +
	"and checks say in `version` which version of millrace wrote them.\n\n"

func TestCommandsAreDocumented(t *testing.T) {
	tree.CheckDocument(t, "../../docs/commands.md", introduction)
}
