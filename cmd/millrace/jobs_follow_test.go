package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestFollowFlag reads every spelling of --follow, and shows a job that was submitted with it.
func TestFollowFlag(t *testing.T) {
	for _, v := range []struct {
		flag         string
		follow, once bool
		shows, epoch string
	}{
		{"--epochs=3", false, false, "", "5 of 3"},
		{"--follow=false", false, false, "", "5 of 3"},
		{"--follow", true, false, "follows\tpartitions that appear later, each delivered 3 times\n", "5"},
		{"--follow=true", true, false, "each delivered 3 times\n", "5"},
		{"--follow=epochs", true, false, "each delivered 3 times\n", "5"},
		{"--follow=once", true, true, "follows\tpartitions that appear later, each delivered 1 time\n", "5"},
	} {
		spec := &apiv1.JobSpec{}
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		f.Uint64Var(&spec.Epochs, "epochs", 3, "")
		addFollow(f, spec)
		require.NoError(t, f.Parse([]string{v.flag}), v.flag)
		assert.Equal(t, []bool{v.follow, v.once}, []bool{spec.Follow, spec.FollowOnce}, v.flag)
		view := viewJob(&apiv1.JobStatus{Spec: spec, Epoch: 4})
		assert.Equal(t, []bool{v.follow, v.once}, []bool{view.Follows, view.FollowsOnce}, v.flag)
		assert.Equal(t, v.epoch, view.epoch, v.flag)
		var shown strings.Builder
		printJob(&shown, view)
		assert.Equal(t, v.follow, strings.Contains(shown.String(), "follows\t"), v.flag)
		assert.Contains(t, shown.String(), v.shows, v.flag)
	}
	submit := []string{"jobs", "submit", "--pipeline", "rm1", "--control", "http://127.0.0.1:1"}
	for says, args := range map[string][]string{
		`"twice": want --follow, or --follow=once`: append(submit, "--follow=twice"),
		`takes no arguments, got ["once"]`:         append(submit, "--follow", "once"),
	} {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, 2, code)
		assert.Contains(t, errs, says)
	}
}
