// Package manual reads the commands that README.md and docs/*.md ask a reader to type, so that a test can type them.
//
// # Overview
//
// Parse returns the fenced blocks of a document. Two kinds are commands:
//
//   - a block marked sh is a piece of a shell session, run as it stands;
//   - a block marked console holds commands behind "$ ", each followed by its output. In the output, "..." stands for
//     any text within a line, and a line of "..." alone for any lines. A command that is to fail ends with a line
//     "exit status 1".
//
// Script makes one shell script of a document: its blocks in order, in one shell, as a person types them into one
// terminal. HTML comments before a block, which a reader of the rendered page does not see, say what the test does
// with it:
//
//	<!-- file: NAME -->          the block below is the file NAME: it is written before the next command runs
//	<!-- not run: REASON -->     the block below is not run; the reason is printed by the test
//	<!-- given: COMMANDS -->     commands that make what the document supposes to be there, as a file of the reader's own
//
// The test of this package runs the scripts of all documents, each in an empty folder with the binary on the PATH, when
// MILLRACE_MANUAL is set; its tier in `make test` does that. Without it the test only checks the documents' form: that
// every block has a kind, and that no command stands in an indented block, where it would not be run.
//
// # Errors
//
// Parse names the line that it does not understand.
//
// # Debugging
//
// A failure prints the document, the line of the block, and the session's output with every command as bash ran it.
package manual
