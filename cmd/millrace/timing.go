package main

import (
	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/standin"
)

// maxDilation bounds --dilate: a second of the model is then almost three hours.
const maxDilation = 10_000

// timingFlags choose the time that the drives of this process take.
type timingFlags struct {
	mode   string
	dilate int
}

func (f *timingFlags) addFlags(cmd *cobra.Command) {
	f.dilate = 1
	cmd.Flags().StringVar(&f.mode, "timing", string(timing.ModeNative), "time of the drives, of --in or by URI mem: or "+
		"file:; native: as fast as this machine; image: what the model says of the active image's parameters; smartssd, "+
		"u280: what it says of PreSto's designs")
	cmd.Flags().Var(quantity.CountFlag[int]{To: &f.dilate}, "dilate", "make modelled times this many times as long, so "+
		"that a machine that is slower than the modelled drives can run them; rates are those of the model's time")
}

// pacing returns the timing of the process's drives, nil for native timing.
func (f *timingFlags) pacing() (*timing.Pacing, error) {
	mode, err := timing.ParseMode(f.mode)
	switch {
	case err != nil:
		return nil, usagef("--%w", err)
	case f.dilate < 1 || f.dilate > maxDilation:
		return nil, usagef("--dilate %d: want 1 to %d", f.dilate, maxDilation)
	case mode != timing.ModeNative:
		return timing.NewPacing(mode, f.dilate), nil
	case f.dilate > 1:
		return nil, usagef("--dilate is for modelled times: native timing is as fast as this machine, and cannot be longer")
	}
	return nil, nil
}

// refuse returns an error if drives elsewhere were to take modelled times.
func (f *timingFlags) refuse(cmd *cobra.Command) error {
	if f.mode == string(timing.ModeNative) && !cmd.Flags().Changed("dilate") {
		return nil
	}
	return usagef("--timing and --dilate are for drives of this process: the deadlines of nodes, of the control plane " +
		"and of NVMe/TCP run on the machine's time, which the model's is not: name files with --in, or drives with " +
		"--drive file:PATH")
}

// configure makes drives, P and a job measure time as the pacing says.
func configure(pacing *timing.Pacing, c *local.Config, o *trainmgr.Options) {
	if pacing == nil {
		return
	}
	if c.Engine == host.EngineAuto {
		c.Engine = host.EngineDrive
	}
	c.Device.Timing, c.Manager.Now, o.Now = pacing, pacing.Clock().Now, pacing.Clock().Now
}

// paceTrainers makes stand-in trainers as fast as they say on the clock of the pacing.
func paceTrainers(pacing *timing.Pacing, trainers ...*standin.Trainer) {
	if pacing == nil {
		return
	}
	for _, t := range trainers {
		t.Clock = pacing.Clock()
	}
}

// timingError returns the error of the pacing where there is one, since others follow from it, and else err.
func timingError(pacing *timing.Pacing, err error) error {
	if pacing != nil {
		if e := pacing.Err(); e != nil {
			return e
		}
	}
	return err
}

// timedReport is a job's report with the timing that its rates are of.
type timedReport struct {
	*trainmgr.Report
	Timing timing.Report `json:"timing"`
	// Energy is that of this machine while the job trained, or of the modelled drives; nil: it was not measured.
	Energy *power.Energy `json:"energy,omitempty"`
}

// nativeReport is the report of a job whose drives are as fast as their machines.
func nativeReport(r *trainmgr.Report) timedReport {
	return timedReport{Report: r, Timing: (*timing.Pacing)(nil).Report()}
}
