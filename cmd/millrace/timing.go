package main

import (
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/standin"
)

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
