package main

import (
	"fmt"

	"github.com/spf13/pflag"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
)

// The words of --follow. A script may also have the values that a boolean flag takes.
const (
	followEpochs = "epochs"
	followOnce   = "once"
)

// followFlag is the flag --follow of jobs submit (pflag.Value).
type followFlag struct{ spec *apiv1.JobSpec }

// addFollow adds the flag --follow, which needs no value.
func addFollow(f *pflag.FlagSet, spec *apiv1.JobSpec) {
	f.Var(followFlag{spec}, "follow", "go on with partitions that appear later: --follow delivers each --epochs times, "+
		"--follow=once a single time")
	f.Lookup("follow").NoOptDefVal = followEpochs
}

// Set sets the flag's value.
func (f followFlag) Set(s string) error {
	switch s {
	case followEpochs, followOnce, "true", "false":
		f.spec.Follow, f.spec.FollowOnce = s != "false", s == followOnce
		return nil
	}
	return fmt.Errorf("%q: want --follow, or --follow=%s", s, followOnce)
}

// String is the value.
func (f followFlag) String() string {
	switch {
	case f.spec.GetFollowOnce():
		return followOnce
	case f.spec.GetFollow():
		return followEpochs
	}
	return ""
}

// Type is how help names the value.
func (followFlag) Type() string { return "string" }

// formatFollow says how often partitions that appear later are delivered, for a table.
func (v *jobView) formatFollow() string {
	times := v.Epochs
	if v.FollowsOnce {
		times = 1
	}
	return "partitions that appear later, each delivered " + quantity.Of(times, "time")
}

// formatEpoch returns which epoch the job is in, for a table. The epochs of a job that follows its data set have no
// end.
func (v *jobView) formatEpoch() string {
	if v.Follows {
		return fmt.Sprint(v.Epoch + 1)
	}
	return fmt.Sprintf("%d of %d", v.Epoch+1, v.Epochs)
}
