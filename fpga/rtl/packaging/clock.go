package packaging

import "github.com/millrace/millrace/fpga/rtl"

// RequestedClock returns the clock in kHz that the link of a unit's kernel requests: that of the path screen, or the
// highest that the unit's longest path allows by that screen if it is lower. No tool has granted it.
func RequestedClock(unit rtl.Unit) (uint32, error) {
	synthesis, err := rtl.ReadSynthesis()
	if err != nil {
		return 0, err
	}
	resources, err := synthesis.Named(unit.Name)
	if err != nil {
		return 0, err
	}
	return min(rtl.ScreenedClockKHz, resources.Path.LimitKHz()), nil
}
