package cli

import (
	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/quantity"
)

// maxDilation bounds --dilate: a second of the model is then almost three hours.
const maxDilation = 10_000

// TimingFlags choose the time that the drives of this process take.
type TimingFlags struct {
	Mode   string
	dilate int
}

// AddFlags adds the flags to a command.
func (f *TimingFlags) AddFlags(cmd *cobra.Command) {
	f.dilate = 1
	cmd.Flags().StringVar(&f.Mode, "timing", string(timing.ModeNative), "time of the drives, of --in or by URI mem: or "+
		"file:; native: as fast as this machine; image: what the model says of the active image's parameters; smartssd, "+
		"u280: what it says of PreSto's designs")
	cmd.Flags().Var(quantity.CountFlag[int]{To: &f.dilate}, "dilate", "make modelled times this many times as long, so "+
		"that a machine that is slower than the modelled drives can run them; rates are those of the model's time")
}

// Pacing returns the timing of the process's drives, nil for native timing.
func (f *TimingFlags) Pacing() (*timing.Pacing, error) {
	mode, err := timing.ParseMode(f.Mode)
	switch {
	case err != nil:
		return nil, Usagef("--%w", err)
	case f.dilate < 1 || f.dilate > maxDilation:
		return nil, Usagef("--dilate %d: want 1 to %d", f.dilate, maxDilation)
	case mode != timing.ModeNative:
		return timing.NewPacing(mode, f.dilate), nil
	case f.dilate > 1:
		return nil, Usagef("--dilate is for modelled times: native timing is as fast as this machine, and cannot be longer")
	}
	return nil, nil
}

// Refuse returns an error if drives elsewhere were to take modelled times.
func (f *TimingFlags) Refuse(cmd *cobra.Command) error {
	if f.Mode == string(timing.ModeNative) && !cmd.Flags().Changed("dilate") {
		return nil
	}
	return Usagef("--timing and --dilate are for drives of this process: the deadlines of nodes, of the control plane " +
		"and of NVMe/TCP run on the machine's time, which the model's is not: name files with --in, or drives with " +
		"--drive file:PATH")
}

// TimingError returns the error of the pacing where there is one, since others follow from it, and else err.
func TimingError(pacing *timing.Pacing, err error) error {
	if pacing != nil {
		if e := pacing.Err(); e != nil {
			return e
		}
	}
	return err
}
