package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows on stderr how far a task is: as a bar on a terminal, as plain or JSON lines elsewhere. It is safe for
// concurrent use.
type progress struct {
	mode string // bars, plain, json or none
	w    io.Writer
	name string
	unit string

	mu    sync.Mutex
	done  int64
	total int64
	begun time.Time
	last  time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
}

// lineInterval is the time between two plain or JSON lines.
const lineInterval = time.Second

// newProgress begins a task of total units.
func (c *console) newProgress(name, unit string, total int64) *progress {
	p := &progress{
		mode: c.progress, w: c.err, name: name, unit: unit, total: total, begun: time.Now(), last: time.Now(),
	}
	if p.mode == "auto" {
		p.mode = "plain"
		if f, ok := c.err.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				p.mode = "bars"
			}
		}
	}
	if p.mode == "bars" {
		p.bars = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(50))
		p.bar = p.bars.AddBar(total,
			mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "+unit), decor.AverageSpeed(0, "  %.0f/s")),
		)
	}
	return p
}

// announce prints a message on stderr: a line, a JSON line, or nothing, as --progress says.
func (c *console) announce(s string) {
	switch c.progress {
	case "none":
	case "json":
		_ = json.NewEncoder(c.err).Encode(map[string]string{"message": s})
	default:
		fmt.Fprintln(c.err, escapeControls(s))
	}
}

// add counts n more units.
func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	switch p.mode {
	case "bars":
		p.bar.IncrInt64(n)
	case "plain", "json":
		if now := time.Now(); now.Sub(p.last) >= lineInterval {
			p.last = now
			p.writeLine()
		}
	}
}

// finish ends the task.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.mode {
	case "bars":
		// Wait would never return for a bar below its total, such as a bar whose total is not known.
		if !p.bar.Completed() {
			p.bar.Abort(false)
		}
		p.bars.Wait()
	case "plain", "json":
		if p.done > 0 { // without a unit the task failed early, and the error says so
			p.writeLine()
		}
	}
}

// writeLine writes one line. p.mu is held.
func (p *progress) writeLine() {
	seconds := time.Since(p.begun).Seconds()
	if p.mode == "json" {
		_ = json.NewEncoder(p.w).Encode(map[string]any{
			"progress": p.name, "unit": p.unit, "done": p.done, "total": p.total, "elapsed_seconds": seconds,
		})
		return
	}
	rate := 0.0
	if seconds > 0 {
		rate = float64(p.done) / seconds
	}
	if p.total <= 0 { // not known
		fmt.Fprintf(p.w, "%s: %d %s, %.0f/s\n", p.name, p.done, p.unit, rate)
		return
	}
	fmt.Fprintf(p.w, "%s: %d of %d %s, %.0f/s\n", p.name, p.done, p.total, p.unit, rate)
}
