package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rtl"
)

// parametersText are parameters of the stock image's SigridHash, with figures of fpga/rtl.
var parametersText = fmt.Sprintf(`parameters:
  clock_khz: {value: 223000, source: requested}
  buffers: {value: 2, source: requested}
  chained: {value: 1, source: assumed, reference: a test}
  units:
    - unit: %d
      elements: {value: 8, source: requested}
      lanes: {value: 1, source: requested}
      initiation_interval: {source: rtl}
      latency_cycles: {source: rtl}
`, sigridhash.Unit)

// TestFiguresOfTheHardwareDescription reads figures whose source is "rtl" from fpga/rtl, and reads its own document
// again. Documents with other figures are refused.
func TestFiguresOfTheHardwareDescription(t *testing.T) {
	unit, err := rtl.Named("sigrid_hash")
	require.NoError(t, err)
	digest, err := unit.Digest()
	require.NoError(t, err)
	s, err := Read([]byte("base: stock\n"+parametersText), 0)
	require.NoError(t, err)
	got := s.Parameters.Units[0]
	reference := "sigrid_hash " + digest
	figure := func(value int) image.Figure {
		return image.Figure{Value: uint32(value), Source: image.SourceRTL, Reference: reference}
	}
	assert.Equal(t, figure(unit.InitiationInterval), got.Interval)
	assert.Equal(t, figure(unit.Latency), got.Latency)
	_, err = image.Build(s)
	require.NoError(t, err)

	text, err := json.Marshal(Of(s))
	require.NoError(t, err)
	again, err := Read(text, 0)
	require.NoError(t, err)
	assert.Equal(t, s.Parameters, again.Parameters)

	change := func(before, after string) string {
		require.Contains(t, parametersText, before)
		return "base: stock\n" + strings.Replace(parametersText, before, after, 1)
	}
	for says, text := range map[string]string{
		"unit sigrid_hash: latency_cycles is 1": change("latency_cycles: {", "latency_cycles: {value: 1, "),
		"initiation_interval is 0 of \"mine\"":  change("interval: {", "interval: {reference: mine, "),
		"fpga/rtl has no unit \"parquet\"": change(fmt.Sprintf("unit: %d", sigridhash.Unit),
			fmt.Sprintf("unit: %d", program.UnitParquet)),
		"fpga/rtl has no unit \"\"":                change(fmt.Sprintf("unit: %d", sigridhash.Unit), "unit: 999"),
		"clock kernel names no source":             "base: stock\nclocks: [{name: kernel, screened_khz: 2}]\n",
		"lanes of unit u names no source":          "units: [{number: 1, name: u, version: 1, lanes: 1}]\n",
		"latency_cycles of kernel k names no":      "kernels: [{unit: 1, name: k, latency_cycles: 3}]\n",
		"initiation_interval of kernel k names no": "kernels: [{unit: 1, name: k, initiation_interval: 1}]\n",
	} {
		_, err := Read([]byte(text), 0)
		var e *Error
		require.ErrorAs(t, err, &e, says)
		assert.ErrorContains(t, err, says)
		assert.Positive(t, e.Line)
	}
}

// TestClocksFitThePaths checks both sides of the clock that the longest path of a unit allows.
func TestClocksFitThePaths(t *testing.T) {
	synthesis, err := rtl.ReadSynthesis()
	require.NoError(t, err)
	hash, err := synthesis.Named("sigrid_hash")
	require.NoError(t, err)
	clock := func(kHz uint32) error {
		text := strings.Replace(parametersText, "value: 223000", fmt.Sprintf("value: %d", kHz), 1)
		require.NotEqual(t, text, strings.Replace(parametersText, "value: 223000", "", 1))
		_, err := Read([]byte("base: stock\n"+text), 0)
		return err
	}
	limit := hash.Path.LimitKHz()
	require.NoError(t, clock(limit))
	require.ErrorContains(t, clock(limit+1), fmt.Sprintf("clock_khz is %d", limit+1))
	require.ErrorContains(t, clock(limit+1), fmt.Sprintf("request at most %d", limit))
}

// TestStockClocksFitThePaths checks that no stock image requests a clock that is too fast for the longest path of a
// unit that fpga/rtl has of its operators.
func TestStockClocksFitThePaths(t *testing.T) {
	checked := 0
	for _, name := range stock.Names() {
		b, err := stock.Named(name)
		require.NoError(t, err)
		m, err := image.Parse(b)
		require.NoError(t, err)
		if m.Spec.Parameters == nil {
			continue
		}
		for _, u := range m.Spec.Units {
			described, _, err := describedUnit(u.Name)
			if err != nil {
				continue // fpga/rtl has no such unit
			}
			checked++
			assert.NoError(t, checkClock(described, m.Spec.Parameters.Clock.Value), "%s", name)
		}
	}
	assert.Greater(t, checked, 10)
}
