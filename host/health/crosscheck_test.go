package health

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// printed is what the library prints, of QEMU's controller.
const printed = `NVMe call: opcode=0x06, size=0x1000, nsid=0x00000000, cdw10=0x00000001

Vendor ID: 0x1b36
Model number: QEMU NVMe Ctrl
Maximum data transfer size: 128 pages

SMART data follows:
Critical warning: 0x00
Temperature: 50° Celsius
Avail. spare: 100%
Avail. spare threshold: 10%
Percentage used: 0%
Data units read: 3 [1.54 MB]
Data units written: 0 [0 B]
Host read commands: 12
Host write commands: 0
Controller busy time: 0
Power cycles: 2
Power on hours: 5
Unsafe shutdowns: 1
Media & data integrity errors: 0
Error information log entries: 7
`

func agreeing() *SMARTLog {
	return &SMARTLog{Temperature: ptr(50), Spare: ptr(100), Threshold: ptr(10), Used: ptr(0),
		BytesRead: ptr(uint64(3 * unit)), Reads: 12, PowerCycles: 2,
		PowerOn: 5, Unsafe: 1, ErrorCount: 7}
}

func TestAgreement(t *testing.T) {
	for name, change := range map[string]func(*SMARTLog){
		"the same":           func(*SMARTLog) {},
		"counters that grew": func(r *SMARTLog) { r.Reads, r.ErrorCount, r.BytesRead = 3, 0, ptr(uint64(unit)) },
		"a degree more":      func(r *SMARTLog) { r.Temperature = ptr(49) },
		"what is not there": func(r *SMARTLog) {
			r.Temperature, r.Spare, r.Threshold, r.BytesRead = nil, nil, nil,
				nil
		},
		"below zero, which wraps": func(r *SMARTLog) { r.Temperature = ptr(-5) },
	} {
		r := agreeing()
		change(r)
		list, err := disagreements(r, strings.NewReader(printed))
		require.NoError(t, err)
		assert.Empty(t, list, name)
	}
}

func TestDisagreement(t *testing.T) {
	for want, change := range map[string]func(*SMARTLog){
		"Temperature: it says 50":            func(r *SMARTLog) { r.Temperature = ptr(53) },
		"Avail. spare: it says 100":          func(r *SMARTLog) { r.Spare = ptr(99) },
		"Avail. spare threshold: it says 10": func(r *SMARTLog) { r.Threshold = ptr(11) },
		"Percentage used: it says 0":         func(r *SMARTLog) { r.Used = ptr(1) },
		"Data units read: it says 3":         func(r *SMARTLog) { r.BytesRead = ptr(uint64(4 * unit)) },
		"Data units written: it says 0":      func(r *SMARTLog) { r.BytesWrote = ptr(uint64(unit)) },
		"Host read commands: it says 12":     func(r *SMARTLog) { r.Reads = 13 },
		"Unsafe shutdowns: it says 1":        func(r *SMARTLog) { r.Unsafe = 2 },
	} {
		r := agreeing()
		change(r)
		list, err := disagreements(r, strings.NewReader(printed))
		require.NoError(t, err)
		require.Len(t, list, 1, want)
		assert.Contains(t, list[0], want)
	}
	list, err := disagreements(agreeing(), strings.NewReader(""))
	require.NoError(t, err)
	assert.Contains(t, list, "Power cycles: it says nothing")
}

func TestCrossCheckOfNothing(t *testing.T) {
	_, err := CrossCheck(t.TempDir()+"/none", agreeing())
	assert.Error(t, err)
}
