// Package clitest checks a tree of commands as its users meet it: help and examples, flags, exit statuses, the keys of
// what it prints in JSON, manual pages, and docs/commands.md. The tests of both programs, millrace and millrace-bench,
// use it.
package clitest
