package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/fpga/timing"
)

// The reasons why drives of some commands have no modelled time.
const (
	ServedTiming = "deadlines of NVMe/TCP and of the hosts' kernels run on the machine's time, which modelled times " +
		"do not: modelled drives run in the process of millrace train or preprocess"
	ServiceTiming = "deadlines of nodes, of launchers and of the control plane run on the machine's time, which " +
		"modelled times do not: modelled drives run in the process of millrace train or preprocess"
	MachineTiming = "this command measures the machine: modelled drives run in the process of millrace train " +
		"or preprocess"
)

// nativeTiming is the flag --timing of a command whose drives, or whose measurements, are as fast as the machine. It
// refuses every other timing, and says why (pflag.Value).
type nativeTiming struct{ why string }

// AddNativeTiming adds --timing to a command that has native timing only.
func AddNativeTiming(f *pflag.FlagSet, why string) {
	f.Var(nativeTiming{why}, "timing", "native, and no other: as fast as this machine")
}

// Set implements pflag.Value.
func (n nativeTiming) Set(s string) error {
	mode, err := timing.ParseMode(s)
	if err == nil && mode != timing.ModeNative {
		err = fmt.Errorf("only native is possible here: %s", n.why)
	}
	return err
}

// String implements pflag.Value.
func (nativeTiming) String() string { return string(timing.ModeNative) }

// Type implements pflag.Value.
func (nativeTiming) Type() string { return "string" }
