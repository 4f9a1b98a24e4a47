package workerpool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/internal/goldenfile"
)

// begin is the time at which the owner's term begins.
var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// cluster is an owner in miniature: a pool, and the nodes that the owner would see.
type cluster struct {
	t    require.TestingT
	pool *Pool
	view View
	out  strings.Builder
}

// TestScripts runs testdata/*.txt: blocks of commands and their results.
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		c := &cluster{t: t}
		return goldenfile.Blocks(script, func(command string) string {
			c.out.Reset()
			c.do(strings.Fields(command))
			return c.out.String()
		})
	})
}

func (c *cluster) number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	require.NoError(c.t, err)
	return n
}

// do carries out a command of a script.
func (c *cluster) do(words []string) {
	options := map[string]string{}
	var names []string
	for _, word := range words[1:] {
		if name, value, given := strings.Cut(word, "="); given {
			options[name] = value
		} else {
			names = append(names, word)
		}
	}
	value := func(name string) float64 { return c.number(cmp.Or(options[name], "0")) }
	after := func(name string) time.Time { return begin.Add(time.Duration(value(name)) * time.Second) }
	switch words[0] {
	case "pool": // least, most, idle; heard and adopted in seconds after the beginning of the term
		c.view = View{Now: begin}
		c.pool = New(Config{Fence: 10, Least: int(value("least")), Most: int(value("most")), Heard: after("heard"),
			Adopted: after("adopted"), Idle: time.Duration(value("idle")) * time.Second})
	case "restore": // NAME, until, started
		err := c.pool.Restore(names[0], record.PooledWorker{Started: value("started") > 0, Until: after("until"),
			Jobs: []string{"x"}}, begin, 5*time.Second)
		if err != nil {
			fmt.Fprintf(&c.out, "error: %v\n", err)
		}
	case "known": // NAME, asked: a node that has not called this leader yet
		c.pool.RestoreNode(Node{Name: names[0], Workers: 1, Asked: value("asked") > 0})
	case "node": // NAME, asked, busy, cpu, buffered
		c.remove(names[0])
		c.view.Nodes = append(c.view.Nodes, Node{Name: names[0], Workers: 1, Asked: value("asked") > 0,
			Draining: value("asked") > 0, Busy: int(value("busy")), CPU: value("cpu"), Buffered: int64(value("buffered"))})
	case "gone":
		c.remove(names[0])
	case "want": // a number, for the jobs NAME
		c.view.Wanted, c.view.Jobs = int(c.number(names[0])), names[1:]
	case "step": // the seconds that pass, one review each
		for range int(c.number(names[0])) {
			c.step(time.Second)
		}
	case "started":
		c.pool.Started(names, true)
	case "failed":
		c.pool.Started(names, false)
	case "stopfailed":
		c.pool.StopFailed(names)
	case "record":
		r, kept := c.pool.Record(names[0])
		fmt.Fprintf(&c.out, "kept %v, started %v, until %v, jobs %v\n", kept, r.Started, r.Until.Sub(begin), r.Jobs)
	default:
		require.Fail(c.t, "an unknown command", words[0])
	}
}

func (c *cluster) remove(name string) {
	c.view.Nodes = slices.DeleteFunc(c.view.Nodes, func(n Node) bool { return n.Name == name })
}

// step lets time pass, has the pool reviewed, and drains the nodes that are to be drained.
func (c *cluster) step(pause time.Duration) Decision {
	c.view.Now = c.view.Now.Add(pause)
	c.view.Seconds = c.view.Now.Sub(begin).Seconds()
	d := c.pool.Step(c.view)
	for i := range c.view.Nodes {
		if n := &c.view.Nodes[i]; slices.Contains(d.Drain, n.Name) {
			n.Asked, n.Draining = true, true
		}
	}
	at := c.view.Now.Sub(begin)
	say := func(what string, names, jobs []string) {
		if len(names) > 0 {
			fmt.Fprintf(&c.out, "%v: %s\n", at, strings.TrimSpace(fmt.Sprintf("%s %s %s", what, strings.Join(names, ","),
				strings.Join(jobs, ","))))
		}
	}
	if d.Changed {
		fmt.Fprintf(&c.out, "%v: %s\n", at, d.Why)
	}
	say("settled", d.Settled, nil)
	say("late", d.Late, nil)
	say("gone", d.Gone, nil)
	say("start", d.Start.Names, d.Start.Jobs)
	say("start again", d.Again.Names, d.Again.Jobs)
	say("drain", d.Drain, nil)
	say("stop", d.Stop.Names, d.Stop.Jobs)
	return d
}

// TestRandomPool: whatever nodes and the hook do, the pool stops only drained workers of its own without leases, starts
// at most the workers that may live, and gives no name twice.
func TestRandomPool(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(rt, "most")
		c := &cluster{t: rt, pool: New(Config{Fence: 10, Most: most, Heard: begin.Add(3 * time.Second),
			Adopted: begin.Add(10 * time.Second), Idle: 5 * time.Second}), view: View{Now: begin}}
		var called []string          // by the hook
		drained := map[string]bool{} // by name: it holds while the node is away
		for range rapid.IntRange(1, 80).Draw(rt, "reviews") {
			switch pick := rapid.SampledFrom([]string{"want", "join", "join", "leave", "busy", "fail", "none"}).Draw(rt,
				"event"); pick {
			case "want":
				c.view.Wanted = rapid.IntRange(0, 6).Draw(rt, "wanted")
			case "join":
				if len(called) > 0 {
					name := rapid.SampledFrom(called).Draw(rt, "name")
					c.remove(name)
					c.view.Nodes = append(c.view.Nodes, Node{Name: name, Workers: 1, Asked: drained[name],
						Draining: drained[name]})
				}
			case "leave", "busy":
				if len(c.view.Nodes) > 0 {
					n := &c.view.Nodes[rapid.IntRange(0, len(c.view.Nodes)-1).Draw(rt, "node")]
					n.Busy = rapid.IntRange(0, 2).Draw(rt, "busy")
					if pick == "leave" {
						c.remove(n.Name)
					}
				}
			case "fail":
				c.pool.Started(called, rapid.Bool().Draw(rt, "succeeded"))
				c.pool.StopFailed(called)
			}
			before := slices.Clone(c.view.Nodes)
			d := c.step(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
			for _, name := range d.Start.Names {
				require.NotContains(rt, called, name, "a name is given once")
				_, kept := c.pool.Record(name)
				require.True(rt, kept, "a worker that is started has a record")
			}
			called = append(called, d.Start.Names...)
			for _, name := range d.Drain {
				drained[name] = true
			}
			for _, name := range d.Gone {
				delete(drained, name)
			}
			if len(d.Start.Names) > 0 {
				require.LessOrEqual(rt, d.Inputs.Live+d.Inputs.Starting+len(d.Start.Names), most)
			}
			for _, name := range d.Stop.Names {
				require.Contains(rt, name, prefix)
				i := slices.IndexFunc(before, func(n Node) bool { return n.Name == name })
				if i >= 0 {
					require.True(rt, before[i].Draining, "a worker that takes work is stopped")
					require.Zero(rt, before[i].Busy, "a worker with leases is stopped")
				}
				require.True(rt, c.view.Now.After(c.pool.Adopted))
			}
		}
	})
}
