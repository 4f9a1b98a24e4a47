package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
)

// logFlags are the flags of a command whose log goes to standard error.
type logFlags struct {
	level, format string
}

func (f *logFlags) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	cli.AddChoice(fl, &f.level, "log-level", "info", "least level that is logged: debug, info, warn or error", "debug",
		"info", "warn", "error")
	cli.AddChoice(fl, &f.format, "log-format", "auto", "format of the log on standard error: text, json, or auto for "+
		"text on a terminal and json elsewhere", "auto", "text", "json")
}

// log returns the command's log, which is silent with --progress none.
func (c *console) log(f logFlags) *slog.Logger {
	if c.Progress == "none" {
		return slog.New(slog.DiscardHandler)
	}
	return logger(c.Err, f.level, f.format)
}

// logger makes the log of every command, the only place that chooses a format: text on a terminal and JSON elsewhere,
// unless one is named. Durations are written as Go writes them in both formats.
func logger(w io.Writer, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil { // the flags and the node's configuration have checked it
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	if format == "auto" {
		format = "json"
		if f, ok := w.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				format = "text"
			}
		}
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}
