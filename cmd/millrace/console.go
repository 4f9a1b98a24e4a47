package main

import (
	"io"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/terminal"
)

// console is what the commands of millrace share. The commands of a subject (drives, images, jobs, ...) are methods of
// a type of their own that embeds it.
type console struct{ cli.Console }

// printRows writes a list: as JSON, or as a table of the fields that have a tag.
func printRows[T any](c *console, rows []T) error {
	return c.Print(rows, func(w io.Writer) { terminal.Rows(w, rows) })
}
