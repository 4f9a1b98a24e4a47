// Package cli is what the command lines of the programs millrace and millrace-bench share: exit statuses, how results,
// progress and errors are printed, help, manual pages, and the flags of time and of energy.
//
// # Overview
//
// [Main] runs the command line of a process. It gives a function of the program a context and the process's streams;
// the function makes its tree of commands, which [Root] completes, and runs it with [Execute]. A [Console] prints what
// commands return.
//
// # Errors
//
// An error is one line on standard error; an error with a method Lines is a line each. [Usagef] and [WrongUsage] make
// the errors of wrong flags and arguments, after which the exit status is [ExitUsage]. [ErrReported] is not printed.
package cli
