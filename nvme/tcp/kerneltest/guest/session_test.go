package guest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// port is a serial port whose other end said everything beforehand.
type port struct {
	io.Reader
	answers bytes.Buffer
}

func (p *port) Write(b []byte) (int, error) { return p.answers.Write(b) }

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// wrapped are lines as shell.sh sends them, numbered from one on.
func wrapped(from int, lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "\r\n%d %s %s\r\n", from+i, checksum(l), l)
	}
	return b.String()
}

func newSession() *session {
	var clock time.Time
	return &session{
		result: &Result{Files: map[string][]byte{}},
		host: map[string]func([]string) (string, error){
			"join": func(args []string) (string, error) { return strings.Join(args, "+"), nil },
			"fail": func([]string) (string, error) { return "", errors.New("broken") },
		},
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
	}
}

func TestSessionFillsTheResult(t *testing.T) {
	s := newSession()
	p := &port{Reader: strings.NewReader(wrapped(1, []string{
		"uname Linux 6.1 x",
		"problem could not load /modules/x.ko",
		"begin one", "result 0 one " + b64("fine\n"),
		"begin two", "result 3 two ",
		"skip three not on this kernel",
		"file log " + b64("\x00\x01"),
		"ask " + b64("join\na b\nc\n"),
		"ask " + b64("fail\n"),
		"ask " + b64("nobody\n"),
		"end 4", "file after " + b64("never read"),
	}...))}
	require.NoError(t, s.serve(p))
	r := s.result
	assert.Equal(t, "Linux 6.1 x", r.Uname)
	assert.Equal(t, []string{"could not load /modules/x.ko"}, r.Problems)
	assert.Equal(t, []Check{
		{Name: "one", Output: "fine\n", Took: time.Second},
		{Name: "two", Status: 3, Took: time.Second},
		{Name: "three", Skipped: "not on this kernel"},
	}, r.Checks)
	assert.Equal(t, []Check{r.Checks[1]}, r.Failed())
	assert.Equal(t, map[string][]byte{"log": {0, 1}}, r.Files)
	assert.True(t, r.Ended)
	assert.Equal(t, 4, r.Status)
	assert.Equal(t,
		"ok 1\nok 2\nok 3\nok 4\nok 5\nok 6\nok 7\nok 8\nok 9\n"+strings.Repeat("yes "+b64("a b+c")+"\n", 2)+"ok 10\n"+
			strings.Repeat("no "+b64("host fail: broken\n")+"\n", 2)+"ok 11\n"+
			strings.Repeat("no "+b64("the host has no function nobody")+"\n", 2)+"ok 12\n", p.answers.String())
}

// A line that did not come whole is asked for again, and one that came twice counts once.
func TestSessionAsksAgain(t *testing.T) {
	s := newSession()
	one, asks := wrapped(1, "result 0 one "+b64("fine\n")), wrapped(2, "ask "+b64("join\na\n"))
	p := &port{Reader: strings.NewReader(
		one[:20] + one[25:] + "garbage\n" + one + one + asks + one + asks + wrapped(3, "end 0"),
	)}
	require.NoError(t, s.serve(p))
	assert.Equal(t, []Check{{Name: "one", Output: "fine\n", Took: s.result.Checks[0].Took}}, s.result.Checks)
	assert.Equal(t, "again\nagain\nok 1\nok 1\nok 2\n"+strings.Repeat("yes "+b64("a")+"\n", 2)+"ok 1\nok 2\nok 3\n",
		p.answers.String())
}

func TestSessionRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, text := range map[string]string{
		"no such word":    "hello",
		"too few fields":  "result 0",
		"status no digit": "result x name ",
		"output not text": "result 0 name ***",
		"file not text":   "file name ***",
		"end no number":   "end soon",
	} {
		t.Run(name, func(t *testing.T) {
			assert.Error(t, newSession().serve(&port{Reader: strings.NewReader(wrapped(1, text))}))
		})
	}
	assert.ErrorIs(t, newSession().serve(&port{Reader: strings.NewReader(wrapped(1, "uname x"))}), io.ErrUnexpectedEOF,
		"QEMU ended first")
}

func TestWarnings(t *testing.T) {
	console := strings.Join([]string{
		"[    1.0] nvme nvme0: creating 2 I/O queues.\r",
		"[    2.0] WARNING: CPU: 0 PID: 1 at block/blk-mq.c:1 x+0x1/0x2\r",
		"[    3.0] I/O error, dev nvme0c0n1, sector 0 op 0x3:(DISCARD)\r",
		"[    4.0] nvme nvme0: queue 2: timeout request 0x61 type 4\r",
		"[    5.0] EXT4-fs (nvme0n1): mounted filesystem\r",
		"[    6.0] BUG: kernel NULL pointer dereference\r",
	}, "\n")
	found := Warnings(console)
	require.Len(t, found, 4)
	assert.NotContains(t, found[0], "\r")
	assert.Len(t, Warnings(console, regexp.MustCompile(`I/O error, dev nvme0c0n1`)), 3)
	assert.Empty(t, Warnings("all is well\n"))
}

func TestOlderGoesByNumber(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"a prefix of the other":     {"6.1", "6.12", true},
		"fewer digits":              {"6.9", "6.12", true},
		"more digits":               {"6.12", "6.2", false},
		"the first number decides":  {"5.19", "6.1", true},
		"the first number is later": {"6.1", "5.19", false},
		"the same":                  {"6.1", "6.1", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, older(c.a, c.b)) })
	}
}

func TestEnvironmentQuotes(t *testing.T) {
	assert.Equal(t, "A='it'\\''s $HOME'\nB=''\n", environment(map[string]string{"B": "", "A": "it's $HOME"}))
}

func TestTail(t *testing.T) {
	assert.Equal(t, "b\nc", tail("a\nb\nc\n", 2))
	assert.Equal(t, "a", tail("a", 2))
}
