package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
)

// maxErrors bounds the mistakes that Parse reports.
const maxErrors = 20

// Error is a mistake in a script.
type Error struct {
	Line, Column int // from 1; 0 where the place is not known
	Why          string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Why)
}

// Parse reads a script from a YAML document of at most MaxScript bytes. The error joins an *Error for each mistake, of
// which it reports the first few.
func Parse(document []byte) (*Script, error) {
	p := new(parser)
	s := new(Script)
	if root := p.readDocument(document); root != nil {
		p.readScript(root, s)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return s, nil
}

// parser walks the node tree of a document. It continues after a mistake.
type parser struct{ errs []error }

func (p *parser) addMistake(n *yaml.Node, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{n.Line, n.Column, fmt.Sprintf(format, args...)})
	}
}

func (p *parser) readDocument(b []byte) *yaml.Node {
	nowhere := new(yaml.Node)
	if len(b) > MaxScript {
		p.addMistake(nowhere, "the script has %d bytes: want at most %d", len(b), MaxScript)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if err == nil {
		switch err := d.Decode(&second); {
		case err == nil:
			p.addMistake(&second, "a second document: a file holds one script")
			return nil
		case !errors.Is(err, io.EOF):
			p.addMistake(nowhere, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
			return nil
		}
	}
	switch {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) != 1:
		p.addMistake(nowhere, "the script is empty: want fail, delay, flip, drop or away")
		return nil
	case err != nil:
		p.addMistake(nowhere, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	return doc.Content[0]
}

// field reads the value of a key.
type field struct {
	key      string
	required bool
	read     func(*yaml.Node)
}

// readMapping reads a mapping with these keys, each at most once.
func (p *parser) readMapping(n *yaml.Node, what string, fields ...field) {
	if n.Kind != yaml.MappingNode {
		p.addMistake(n, "%s: want a mapping", what)
		return
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.key
	}
	seen := make([]bool, len(fields))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		at := slices.Index(names, k.Value)
		switch {
		case k.Kind != yaml.ScalarNode || at < 0:
			p.addMistake(k, "%s: unknown key %q: want %s", what, shortened(k.Value), strings.Join(names, ", "))
		case seen[at]:
			p.addMistake(k, "%s: %s is there twice", what, k.Value)
		default:
			seen[at] = true
			fields[at].read(n.Content[i+1])
		}
	}
	for i, f := range fields {
		if f.required && !seen[i] {
			p.addMistake(n, "%s: %s is missing", what, f.key)
		}
	}
}

// scalarText returns a node's text; "" where the node is not a scalar, which is a mistake that it reports.
func (p *parser) scalarText(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		p.addMistake(n, "%s: want a value", what)
		return ""
	}
	return n.Value
}

func shortened(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// wordField reads one of some names.
func (p *parser) wordField(key string, names []string, into *int) field {
	return field{key, false, func(n *yaml.Node) {
		v := p.scalarText(n, key)
		if v == "" {
			return
		}
		at := slices.Index(names, v)
		if at < 0 {
			p.addMistake(n, "%s %q: want %s", key, shortened(v), strings.Join(names, ", "))
			return
		}
		*into = at
	}}
}

// numberField reads a whole number from least to most.
func (p *parser) numberField(key string, least, most uint64, into *uint64) field {
	return field{key, false, func(n *yaml.Node) {
		v := p.scalarText(n, key)
		if v == "" {
			return
		}
		x, err := strconv.ParseUint(v, 0, 64)
		if err != nil || x < least || x > most {
			p.addMistake(n, "%s %q: want a number from %d to %d", key, shortened(v), least, most)
			return
		}
		*into = x
	}}
}

func (p *parser) countField(key string, least int64, into *int64) field {
	var v uint64
	f := p.numberField(key, uint64(least), maxCount, &v)
	return field{key, false, func(n *yaml.Node) {
		v = uint64(*into)
		f.read(n)
		*into = int64(v)
	}}
}

func (p *parser) timesField(into *int64) field {
	f := p.countField("times", 1, into)
	return field{"times", false, func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Value == "always" {
			*into = Always
			return
		}
		*into = 1
		f.read(n)
	}}
}

func (p *parser) durationField(key string, into *time.Duration) field {
	return field{key, true, func(n *yaml.Node) {
		v := p.scalarText(n, key)
		if v == "" {
			return
		}
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 || d > MaxTime {
			p.addMistake(n, "%s %q: want a time such as 200ms or 5s, at most %v", key, shortened(v), MaxTime)
			return
		}
		*into = d
	}}
}

func (p *parser) queueField(into *Queues, given *bool) field {
	return field{"queue", false, func(n *yaml.Node) {
		*given = true
		var v uint64
		switch p.scalarText(n, "queue") {
		case "":
		case "any":
			*into = AnyQueue
		case "admin":
			*into = 0
		case "io":
			*into = IOQueue
		default:
			f := p.numberField("queue", 0, 0xffff, &v)
			before := len(p.errs)
			if f.read(n); len(p.errs) == before {
				*into = Queues(v)
			}
		}
	}}
}

func (p *parser) booleanField(key string, into *bool) field {
	return field{key, false, func(n *yaml.Node) {
		switch v := p.scalarText(n, key); v {
		case "", "false":
		case "true":
			*into = true
		default:
			p.addMistake(n, "%s %q: want true or false", key, shortened(v))
		}
	}}
}

func requiredField(f field) field { f.required = true; return f }

// rulesField reads the list of a kind.
func (p *parser) rulesField(key string, one func(n *yaml.Node)) field {
	return field{key, false, func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			p.addMistake(n, "%s: want a list", key)
			return
		}
		if len(n.Content) > MaxRules {
			p.addMistake(n, "%s: %d rules: want at most %d", key, len(n.Content), MaxRules)
			return
		}
		for _, item := range n.Content {
			one(item)
		}
	}}
}

func (p *parser) readScript(root *yaml.Node, s *Script) {
	p.readMapping(root, "script",
		p.rulesField("fail", func(n *yaml.Node) { s.Fail = append(s.Fail, p.failRule(n)) }),
		p.rulesField("delay", func(n *yaml.Node) { s.Delay = append(s.Delay, p.delayRule(n)) }),
		p.rulesField("flip", func(n *yaml.Node) { s.Flip = append(s.Flip, p.flipRule(n)) }),
		p.rulesField("drop", func(n *yaml.Node) { s.Drop = append(s.Drop, p.dropRule(n)) }),
		p.rulesField("away", func(n *yaml.Node) { s.Away = append(s.Away, p.awayRule(n)) }),
	)
}

// statusNames are the statuses of scripts.
var statusNames = map[string]nvme.Status{
	"unrecovered_read_error": nvme.UnrecoveredReadError, "write_fault": nvme.WriteFault,
	"capacity_exceeded": nvme.CapacityExceeded,
}

func (p *parser) failRule(n *yaml.Node) Fail {
	f := Fail{Count: Count{Times: Always}}
	before := len(p.errs)
	p.readMapping(n, "fail",
		requiredField(p.wordField("operation", operations, (*int)(&f.Operation))),
		p.numberField("lba", 0, 1<<63-1, &f.LBA),
		p.numberField("blocks", 1, 1<<63, &f.Blocks),
		field{"status", false, func(n *yaml.Node) {
			v := p.scalarText(n, "status")
			st, ok := statusNames[v]
			if !ok && v != "" {
				p.addMistake(n, "status %q: want unrecovered_read_error, write_fault or capacity_exceeded", shortened(v))
			}
			f.Status = st
		}},
		p.countField("after", 0, &f.After), p.timesField(&f.Times))
	if len(p.errs) > before {
		return f
	}
	lba := valueOfKey(n, "lba")
	if f.Operation != Flush {
		if f.Blocks == 0 {
			f.Blocks = 1
		}
		if lba == nil {
			p.addMistake(n, "fail: lba is missing")
		}
	} else if lba != nil {
		p.addMistake(lba, "fail: a flush is of everything: lba and blocks do not go with it")
		return f
	}
	if f.Status == nvme.Success {
		f.Status = statuses[f.Operation][0]
	}
	p.addMistakeOf(n, "fail", f.checkFail())
	return f
}

// valueOfKey returns the value of a key, or nil.
func valueOfKey(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (p *parser) addMistakeOf(n *yaml.Node, what string, err error) {
	if err != nil {
		p.addMistake(n, "%s: %v", what, err)
	}
}

// opcodes are the opcodes that have a name in scripts, and the queues of their commands.
var opcodes = map[string]struct {
	opcode int
	queue  Queues
}{
	"flush": {nvme.NVMFlush, IOQueue}, "write": {nvme.NVMWrite, IOQueue}, "read": {nvme.NVMRead,
		IOQueue}, "compare": {nvme.NVMCompare, IOQueue},
	"write_zeroes": {nvme.NVMWriteZeroes, IOQueue}, "dataset_management": {nvme.NVMDataset, IOQueue},
	"preprocess": {cs.IOPreprocess, IOQueue}, "fetch": {cs.IOFetch, IOQueue}, "store": {cs.IOStore, IOQueue},
	"get_log_page": {nvme.AdminGetLogPage, 0}, "identify": {nvme.AdminIdentify, 0}, "abort": {nvme.AdminAbort, 0},
	"set_features": {nvme.AdminSetFeatures, 0}, "get_features": {nvme.AdminGetFeatures, 0},
	"async_event_request": {nvme.AdminAsyncEventRequest, 0}, "keep_alive": {nvme.AdminKeepAlive, 0},
	"fabrics": {fabrics.Opcode, AnyQueue},
}

func (p *parser) delayRule(n *yaml.Node) Delay {
	d := Delay{Opcode: AnyOpcode, Queue: AnyQueue, Count: Count{Times: Always}}
	queue, given := AnyQueue, false
	p.readMapping(n, "delay", p.durationField("by", &d.By),
		field{"opcode", false, func(n *yaml.Node) {
			v := p.scalarText(n, "opcode")
			if named, ok := opcodes[v]; ok {
				d.Opcode, d.Queue, d.Blocks = named.opcode, named.queue, named.queue == IOQueue
			} else if x, err := strconv.ParseUint(v, 0, 8); err == nil {
				d.Opcode = int(x)
			} else if v != "" {
				p.addMistake(n, "opcode %q: want a number up to 0xff, or a name: %s", shortened(v),
					strings.Join(sortedNames(opcodes), ", "))
			}
		}},
		p.queueField(&queue, &given), p.countField("after", 0, &d.After), p.timesField(&d.Times))
	if !given {
		return d
	}
	if d.Queue == 0 && queue != 0 && queue != AnyQueue || d.Queue == IOQueue && queue == 0 {
		p.addMistake(valueOfKey(n, "queue"), "delay: a command of that name does not go to this queue")
	} else if queue != AnyQueue {
		d.Queue = queue
	}
	return d
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func (p *parser) flipRule(n *yaml.Node) Flip {
	f := Flip{Queue: AnyQueue, Count: Count{Times: 1}}
	pdu, given := int64(1), false
	p.readMapping(n, "flip", requiredField(p.wordField("digest", digests, (*int)(&f.Digest))),
		p.countField("pdu", 1, &pdu), p.timesField(&f.Times), p.queueField(&f.Queue, &given),
		p.wordField("direction", directions, (*int)(&f.Direction)))
	f.After = pdu - 1
	return f
}

func (p *parser) dropRule(n *yaml.Node) Drop {
	d := Drop{Queue: AnyQueue, Times: 1}
	given := false
	p.readMapping(n, "drop", requiredField(p.countField("pdu", 1, &d.PDU)), p.queueField(&d.Queue, &given),
		p.wordField("direction", directions, (*int)(&d.Direction)), p.booleanField("torn", &d.Torn), p.timesField(&d.Times))
	return d
}

func (p *parser) awayRule(n *yaml.Node) Away {
	a := Away{Times: 1}
	p.readMapping(n, "away", p.durationField("for", &a.For), requiredField(p.countField("command", 1, &a.Command)),
		p.timesField(&a.Times))
	return a
}
