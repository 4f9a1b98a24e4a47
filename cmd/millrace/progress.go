package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
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

	mu     sync.Mutex
	done   int64
	total  int64
	counts []progressCount // add was last given these
	begun  time.Time
	last   time.Time
	bars   *mpb.Progress
	bar    *mpb.Bar

	text atomic.Pointer[string] // The bar shows counts, and is drawn while mu may be held.
}

// progressCount is how many things of another unit than the task's are done.
type progressCount struct {
	name        string
	done, total int64 // total 0: not known
}

func (c progressCount) String() string {
	if c.total > 0 {
		return fmt.Sprintf("%d of %d %s", c.done, c.total, c.name)
	}
	return fmt.Sprintf("%d %s", c.done, c.name)
}

// lineInterval is the time between two plain or JSON lines.
const lineInterval = time.Second

// newProgress begins a task of total units.
func (c *console) newProgress(name, unit string, total int64) *progress {
	p := &progress{
		mode: c.Progress, w: c.Err, name: name, unit: unit, total: total, begun: time.Now(), last: time.Now(),
	}
	if p.mode == "auto" {
		p.mode = "plain"
		if f, ok := c.Err.(*os.File); ok {
			if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				p.mode = "bars"
			}
		}
	}
	if p.mode == "bars" {
		p.bars = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(50))
		p.bar = p.bars.AddBar(total,
			mpb.PrependDecorators(decor.Name(name+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit("%d / %d "+unit), decor.AverageSpeed(0, "  %.0f/s"),
				decor.Any(func(decor.Statistics) string {
					if text := p.text.Load(); text != nil {
						return *text
					}
					return ""
				}),
				decor.OnComplete(decor.Name("  "), ""), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")),
		)
	}
	return p
}

// add counts n more units, and says how many things of other units are done by then.
func (p *progress) add(n int64, counts ...progressCount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.counts = counts
	switch p.mode {
	case "bars":
		if len(counts) > 0 {
			text := p.countsText()
			p.text.Store(&text)
		}
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

// countsText returns the counts, each behind a comma. p.mu is held.
func (p *progress) countsText() string {
	var b strings.Builder
	for _, c := range p.counts {
		fmt.Fprintf(&b, ", %v", c)
	}
	return b.String()
}

// secondsLeft estimates from the rate so far how long the rest takes, and reports whether it can. p.mu is held.
func (p *progress) secondsLeft(elapsed float64) (float64, bool) {
	if p.done <= 0 || p.total <= p.done {
		return 0, false
	}
	return elapsed * float64(p.total-p.done) / float64(p.done), true
}

// writeLine writes one line. p.mu is held.
func (p *progress) writeLine() {
	seconds := time.Since(p.begun).Seconds()
	left, estimated := p.secondsLeft(seconds)
	if p.mode == "json" {
		line := map[string]any{
			"progress": p.name, "unit": p.unit, "done": p.done, "total": p.total, "elapsed_seconds": seconds,
		}
		if estimated {
			line["remaining_seconds"] = left
		}
		for _, c := range p.counts {
			line[c.name] = c.done
			if c.total > 0 {
				line["all_"+c.name] = c.total
			}
		}
		_ = json.NewEncoder(p.w).Encode(line)
		return
	}
	rate := 0.0
	if seconds > 0 {
		rate = float64(p.done) / seconds
	}
	done := fmt.Sprint(p.done)
	if p.total > 0 {
		done = fmt.Sprintf("%d of %d", p.done, p.total)
	}
	ends := ""
	if estimated {
		ends = fmt.Sprintf(", %v left", time.Duration(math.Ceil(left))*time.Second)
	}
	fmt.Fprintf(p.w, "%s: %s %s%s, %.0f/s%s\n", p.name, done, p.unit, p.countsText(), rate, ends)
}
