package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/internal/terminal"
)

// streams are where a command reads and writes; tests give their own.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// console holds the streams of a command, and the flags that every command has: how results and progress are shown.
// The commands of a subject (drives, images, jobs, ...) are methods of a type of their own that embeds it.
type console struct {
	streams
	output   string // --output
	progress string // --progress
	wide     bool   // --wide
	// screen is the terminal that the output ends up on when out is a buffer, as in a watch; nil otherwise.
	screen io.Writer
}

// moreOutputs is the annotation of a command that has a further --output beside table and json: its name.
const moreOutputs = "millrace/output"

// checkShared checks the flags that every command has, of one command.
func (c *console) checkShared(cmd *cobra.Command) error {
	more := cmd.Annotations[moreOutputs]
	if c.output != "table" && c.output != "json" && (more == "" || c.output != more) {
		if more != "" {
			return usagef("--output %q: want table, json or %s", c.output, more)
		}
		return usagef("--output %q: want table or json", c.output)
	}
	if err := refuseZero(cmd); err != nil {
		return err
	}
	switch c.progress {
	case "auto", "plain", "json", "none":
		return nil
	}
	return usagef("--progress %q: want auto, plain, json or none", c.progress)
}

// report writes the result of a measurement, a job, a plan or a check as print does, with the version of this binary,
// so that a file says what made it: in JSON as the first key, or as the first key of each result of a list, and in text
// as the last line.
func (c *console) report(v any, table func(w io.Writer)) error {
	if c.output != "json" {
		return c.print(v, func(w io.Writer) {
			table(w)
			fmt.Fprintln(w, versionLine())
		})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	var list []json.RawMessage
	if json.Unmarshal(b.Bytes(), &list) != nil {
		return c.print(withVersion(b.Bytes()), table)
	}
	for i, one := range list {
		list[i] = withVersion(one)
	}
	return c.print(list, table)
}

// versionLine is the line of a text that names the binary which made it.
func versionLine() string { return "millrace " + buildVersion().Version }

// withVersion adds the version of this binary to an object in JSON, which has no such key.
func withVersion(object []byte) json.RawMessage {
	rest, found := bytes.CutPrefix(bytes.TrimSpace(object), []byte("{"))
	if !found {
		return object
	}
	head := fmt.Sprintf(`{"version":%q`, buildVersion().Version)
	if !bytes.Equal(rest, []byte("}")) {
		head += ","
	}
	return append([]byte(head), rest...)
}

// print writes a result: as JSON, or as the table that the function writes. Tabs separate the table's cells.
func (c *console) print(v any, table func(w io.Writer)) error {
	if c.output == "json" {
		e := json.NewEncoder(c.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	text := c.table(table)
	if c.screen == nil && terminal.Colours(c.out) {
		text = terminal.Paint(text)
	}
	_, err := io.WriteString(c.out, text)
	return err
}

// tableCell is terminal.Cell.
func tableCell(name string) string { return terminal.Cell(name) }

// printRows writes a list: as JSON, or as a table of the fields that have a tag.
func printRows[T any](c *console, rows []T) error {
	return c.print(rows, func(w io.Writer) { terminal.Rows(w, rows) })
}

// table lays out what the function writes, folded to the terminal that results go to, if they go to one.
func (c *console) table(write func(w io.Writer)) string {
	var b strings.Builder
	write(&b)
	screen := c.screen
	if screen == nil {
		screen = c.out
	}
	width := terminal.Width(screen)
	if c.wide {
		width = 0
	}
	return terminal.Table(terminal.Escape(b.String()), width)
}
