package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/internal/terminal"
)

// Streams are where a command reads and writes; tests give their own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Console holds the streams of a command, and the flags that every command has: how results and progress are shown.
type Console struct {
	Streams
	Output   string // --output
	Progress string // --progress
	Wide     bool   // --wide
	// Screen is the terminal that the output ends up on when Out is a buffer, as in a watch; nil otherwise.
	Screen io.Writer
}

// MoreOutputs is the annotation of a command that has a further --output beside table and json: its name.
const MoreOutputs = "millrace/output"

// checkShared checks the flags that every command has, of one command.
func (c *Console) checkShared(cmd *cobra.Command) error {
	more := cmd.Annotations[MoreOutputs]
	if c.Output != "table" && c.Output != "json" && (more == "" || c.Output != more) {
		if more != "" {
			return Usagef("--output %q: want table, json or %s", c.Output, more)
		}
		return Usagef("--output %q: want table or json", c.Output)
	}
	if err := refuseZero(cmd); err != nil {
		return err
	}
	switch c.Progress {
	case "auto", "plain", "json", "none":
		return nil
	}
	return Usagef("--progress %q: want auto, plain, json or none", c.Progress)
}

// Report writes the result of a measurement, a job, a plan or a check as Print does, with the version of this binary,
// so that a file says what made it: in JSON as the first key, or as the first key of each result of a list, and in text
// as the last line.
func (c *Console) Report(v any, table func(w io.Writer)) error {
	if c.Output != "json" {
		return c.Print(v, func(w io.Writer) {
			table(w)
			fmt.Fprintln(w, VersionLine())
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
		return c.Print(withVersion(b.Bytes()), table)
	}
	for i, one := range list {
		list[i] = withVersion(one)
	}
	return c.Print(list, table)
}

// VersionLine is the line of a text that names the binary which made it.
func VersionLine() string { return "millrace " + version() }

// withVersion adds the version of this binary to an object in JSON, which has no such key.
func withVersion(object []byte) json.RawMessage {
	rest, found := bytes.CutPrefix(bytes.TrimSpace(object), []byte("{"))
	if !found {
		return object
	}
	head := fmt.Sprintf(`{"version":%q`, version())
	if !bytes.Equal(rest, []byte("}")) {
		head += ","
	}
	return append([]byte(head), rest...)
}

// Print writes a result: as JSON, or as the table that the function writes. Tabs separate the table's cells.
func (c *Console) Print(v any, table func(w io.Writer)) error {
	if c.Output == "json" {
		e := json.NewEncoder(c.Out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	text := c.Table(table)
	if c.Screen == nil && terminal.Colours(c.Out) {
		text = terminal.Paint(text)
	}
	_, err := io.WriteString(c.Out, text)
	return err
}

// Table lays out what the function writes, folded to the terminal that results go to, if they go to one.
func (c *Console) Table(write func(w io.Writer)) string {
	var b strings.Builder
	write(&b)
	screen := c.Screen
	if screen == nil {
		screen = c.Out
	}
	width := terminal.Width(screen)
	if c.Wide {
		width = 0
	}
	return terminal.Table(terminal.Escape(b.String()), width)
}

// Announce prints a message on stderr: a line, a JSON line, or nothing, as --progress says.
func (c *Console) Announce(s string) {
	switch c.Progress {
	case "none":
	case "json":
		_ = json.NewEncoder(c.Err).Encode(map[string]string{"message": s})
	default:
		fmt.Fprintln(c.Err, terminal.Escape(s))
	}
}
