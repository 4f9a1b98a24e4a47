package faults

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

// documented is the script in the package's documentation.
func documented(t testing.TB) []byte {
	t.Helper()
	f, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var b strings.Builder
	for line := range strings.Lines(string(f)) {
		if s, ok := strings.CutPrefix(line, "//\t"); ok {
			b.WriteString(s)
		}
	}
	return []byte(b.String())
}

func TestParseDocumented(t *testing.T) {
	s, err := Parse(documented(t))
	require.NoError(t, err)
	assert.Equal(t, &Script{
		Fail: []Fail{
			{Read, 1000, 8, Count{0, 3}, nvme.UnrecoveredReadError},
			{Write, 2048, 1, Count{0, Always}, nvme.CapacityExceeded},
			{Flush, 0, 0, Count{2, 1}, nvme.WriteFault},
		},
		Delay: []Delay{
			{200 * time.Millisecond, nvme.NVMRead, true, IOQueue, Count{0, 5}},
			{2 * time.Second, nvme.AdminKeepAlive, false, 0, Count{0, Always}},
		},
		Flip: []Flip{
			{DataDigest, AnyQueue, Sent, Count{6, 1}},
			{HeaderDigest, IOQueue, Received, Count{2, 2}},
		},
		Drop: []Drop{
			{100, 1, Sent, false, 1},
			{4, AnyQueue, Received, true, Always},
		},
		Away: []Away{{5 * time.Second, 1000, 1}},
	}, s)
	_, err = New(s, Options{})
	require.NoError(t, err)
}

func TestParse(t *testing.T) {
	for script, want := range map[string]Script{
		"{}":                                   {},
		"fail: []":                             {},
		"fail: [{operation: read, lba: 0x10}]": {Fail: []Fail{{Read, 16, 1, Count{0, Always}, nvme.UnrecoveredReadError}}},
		"fail: [{operation: flush, status: capacity_exceeded}]": {Fail: []Fail{{Flush, 0, 0, Count{0, Always},
			nvme.CapacityExceeded}}},
		"fail: [{operation: write, lba: 0, times: always}]": {Fail: []Fail{{Write, 0, 1, Count{0, Always},
			nvme.WriteFault}}},
		"delay: [{by: 1ms}]": {Delay: []Delay{{time.Millisecond, AnyOpcode, false,
			AnyQueue, Count{0, Always}}}},
		"delay: [{by: 1ms, queue: 3, opcode: write}]": {Delay: []Delay{{time.Millisecond, nvme.NVMWrite, true,
			3, Count{0, Always}}}},
		"delay: [{by: 1ms, queue: any, opcode: identify, after: 1}]": {Delay: []Delay{{time.Millisecond, nvme.AdminIdentify,
			false, 0, Count{1, Always}}}},
		"delay: [{by: 1ms, opcode: 0x7F, queue: io}]": {Delay: []Delay{{time.Millisecond, 0x7f, false, IOQueue,
			Count{0, Always}}}},
		"flip: [{digest: data}]": {Flip: []Flip{{DataDigest, AnyQueue, Sent,
			Count{0, 1}}}},
		"drop: [{pdu: 1, torn: false}]":                {Drop: []Drop{{1, AnyQueue, Sent, false, 1}}},
		"away: [{for: 1h, command: 1, times: always}]": {Away: []Away{{time.Hour, 1, Always}}},
	} {
		s, err := Parse([]byte(script))
		if assert.NoError(t, err, script) {
			assert.Equal(t, &want, s, script)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for script, want := range map[string]string{
		"":                                      "empty",
		"# nothing":                             "empty",
		"fail: [":                               "",
		"[]":                                    "1:1: script: want a mapping",
		"{}\n---\n{}":                           "second document",
		"fial: []":                              `1:1: script: unknown key "fial": want fail, delay, flip, drop, away`,
		"fail: {}":                              "1:7: fail: want a list",
		"fail: []\nfail: []":                    "2:1: script: fail is there twice",
		"fail:\n- {operation: read, lab: 3}":    `2:21: fail: unknown key "lab"`,
		"fail:\n- {operation: read}":            "2:3: fail: lba is missing",
		"fail:\n- {lba: 3}":                     "2:3: fail: operation is missing",
		"fail: [{operation: erase, lba: 3}]":    `1:20: operation "erase": want read, write, flush`,
		"fail: [{operation: flush, lba: 3}]":    "1:32: fail: a flush is of everything",
		"fail: [{operation: flush, blocks: 3}]": "a flush is of everything",
		"fail: [{operation: read, lba: -1}]":    `1:31: lba "-1": want a number from 0 to`,
		"fail: [{operation: read, lba: 1.5}]":   `lba "1.5"`,
		"fail: [{operation: read, lba: [1]}]":   "1:31: lba: want a value",
		"fail: [{operation: read, lba: 1, blocks: 0}]":                   `blocks "0"`,
		"fail: [{operation: read, lba: 9223372036854775807, blocks: 2}]": "below 2^63",
		"fail: [{operation: read, lba: 18446744073709551616}]":           `lba "18446744073709551616"`,
		"fail: [{operation: read, lba: 1, times: 0}]":                    `times "0": want a number from 1`,
		"fail: [{operation: read, lba: 1, times: never}]":                `times "never"`,
		"fail: [{operation: read, lba: 1, status: write_fault}]":         "a failed read gives",
		"fail: [{operation: read, lba: 1, status: tired}]":               `1:42: status "tired"`,
		"fail: [&a {operation: read, lba: 1}, *a]":                       "want a mapping",
		"fail: [{operation: read, lba: 1, ? [a] : b}]":                   "unknown key",
		"delay: [{}]":                      "by is missing",
		"delay: [{by: 5}]":                 `1:14: by "5": want a time such as 200ms`,
		"delay: [{by: -5s}]":               `by "-5s"`,
		"delay: [{by: 61m}]":               `by "61m"`,
		"delay: [{by: 1s, opcode: 0x100}]": `opcode "0x100": want a number up to 0xff, or a name: abort, async_event_request`,
		"delay: [{by: 1s, opcode: keep_alive, queue: io}]": "1:45: delay: a command of that name does not " +
			"go to this queue",
		"delay: [{by: 1s, opcode: read, queue: admin}]": "does not go to this queue",
		"delay: [{by: 1s, queue: 65536}]":               `queue "65536"`,
		"flip: [{}]":                                    "digest is missing",
		"flip: [{digest: payload}]":                     "want header, data",
		"flip: [{digest: data, pdu: 0}]":                `pdu "0"`,
		"flip: [{digest: data, direction: up}]":         "want sent, received",
		"drop: [{}]":                                    "pdu is missing",
		"drop: [{pdu: 1, torn: perhaps}]":               "want true or false",
		"away: [{for: 5s}]":                             "command is missing",
		"away: [{command: 5}]":                          "for is missing",
		"fail: [" + strings.Repeat("{operation: flush},", MaxRules+1) + "]": "257 rules: want at most 256",
		strings.Repeat(" ", MaxScript+1):                                    "bytes: want at most",
	} {
		_, err := Parse([]byte(script))
		if assert.Error(t, err, script) {
			assert.ErrorContains(t, err, want, script)
			var e *Error
			assert.ErrorAs(t, err, &e, script)
		}
	}
}

// All faults are reported at once, up to a limit.
func TestParseTellsAll(t *testing.T) {
	_, err := Parse([]byte("fail: [{operation: x}]\nflip: [{digest: y}]\naway: 3"))
	for _, want := range []string{"1:20: ", "2:17: ", "3:7: "} {
		assert.ErrorContains(t, err, want)
	}
	_, err = Parse([]byte("{" + strings.Repeat("a: 1, ", 1000) + "}"))
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), maxErrors)
}

// New holds a script that was made by hand to the same rules.
func TestNewRefuses(t *testing.T) {
	once := Count{Times: 1}
	for name, s := range map[string]Script{
		"no times":          {Flip: []Flip{{}}},
		"negative after":    {Flip: []Flip{{Count: Count{-1, 1}}}},
		"no blocks":         {Fail: []Fail{{Status: nvme.UnrecoveredReadError, Count: once}}},
		"no status":         {Fail: []Fail{{Blocks: 1, Count: once}}},
		"operation":         {Fail: []Fail{{Operation: 9, Blocks: 1, Count: once}}},
		"opcode":            {Delay: []Delay{{By: 1, Opcode: 256, Count: once}}},
		"no time":           {Delay: []Delay{{Count: once}}},
		"queue":             {Delay: []Delay{{By: 1, Queue: -3, Count: once}}},
		"digest":            {Flip: []Flip{{Digest: 2, Count: once}}},
		"direction":         {Flip: []Flip{{Direction: -1, Count: once}}},
		"pdu":               {Drop: []Drop{{Times: 1}}},
		"drop's times":      {Drop: []Drop{{PDU: 1}}},
		"command":           {Away: []Away{{For: 1, Times: 1}}},
		"away's time":       {Away: []Away{{Command: 1, Times: 1}}},
		"too many":          {Away: make([]Away, MaxRules+1)},
		"a flush of blocks": {Fail: []Fail{{Operation: Flush, Blocks: 1, Status: nvme.WriteFault, Count: once}}},
	} {
		_, err := New(&s, Options{})
		assert.Error(t, err, name)
	}
}

// New takes every script that Parse takes; Parse refuses every other script with an Error.
func FuzzParse(f *testing.F) {
	f.Add(documented(f))
	for _, s := range []string{"", "{}", "fail: [{operation: flush}]", "a: &a [*a]",
		"fail: [&a {operation: read, lba: 1}, *a]", "delay: [{by: 1s, opcode: read, queue: 7}]", "---\n---\n", "{? {} : " +
			"[]}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			var e *Error
			require.True(t, errors.As(err, &e), "%v", err)
			return
		}
		_, err = New(s, Options{})
		require.NoError(t, err)
	})
}

// The names of scripts are those of the package.
func TestNames(t *testing.T) {
	assert.Equal(t, "read write flush 7", strings.Join([]string{Read.String(), Write.String(), Flush.String(),
		Operation(7).String()}, " "))
	assert.Equal(t, "sent received header data", strings.Join([]string{Sent.String(), Received.String(),
		HeaderDigest.String(), DataDigest.String()}, " "))
}
