package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/offload"
)

// offloadFlags are the flags of a job that shares its splits between drives and the trainer's own CPUs.
type offloadFlags struct {
	files   []string
	card    string
	policy  string
	model   string
	metrics string
	log     string
	profile time.Duration
}

func (o *offloadFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	addNames(f, &o.files, "local",
		"with --drive or --accelerator, or with --offload for a job of the service: the same partitions as files of "+
			"this machine, whose CPUs preprocess what drives and nodes do not")
	f.StringVar(&o.card, "local-accelerator", "",
		"with --local and --drive: a drive by URI that can compute on what this machine reads of --local; the policy "+
			"chooses between it and the drives of --drive")
	f.StringVar(&o.policy, "offload", "extended",
		"with --local, or for a job of the service: share of the splits for the drives and all other workers "+
			"elsewhere: extended, paper, fastflow-code, or a number from 0 to 1")
	f.StringVar(&o.model, "offload-model", "",
		"with --local or a policy of --offload: name of the model, under which its profile is kept for the next job")
	f.StringVar(&o.metrics, "offload-metrics", "",
		"with --offload-model: file in which profiles are kept (default: in the user's cache)")
	f.DurationVar(&o.profile, "profile-time", 0,
		"with --local: least time of each of the profile's five measurements, however short the job is; 0: 1s, and no "+
			"profile where the job takes less than five times as long")
	f.StringVar(&o.log, "offload-log", "",
		"with --local: file for a line of JSON a decision while the job runs; millrace bench offload --replay checks "+
			"it")
}

// given reports whether the job shares its splits.
func (o *offloadFlags) given() bool { return len(o.files) > 0 }

// options turns the flags into a job's options. remote is the configuration of the drives elsewhere. The caller
// closes the returned value.
func (o *offloadFlags) options(cmd *cobra.Command, in *input, remote local.Config,
	job *trainmgr.Options) (drives *local.Elsewhere, closeAll func() error, err error) {
	if len(in.drives) == 0 && in.card == "" {
		return nil, nil, cli.Usagef("--local is for jobs over drives: name them with --drive, or with --in and " +
			"--accelerator")
	}
	share := &job.Offload
	if in.card != "" && len(in.drives) == 0 { // this machine reads, and the accelerator transforms
		share.Cut = offload.Transforms
	}
	if ratio, numeric := strconv.ParseFloat(o.policy, 64); numeric == nil {
		if !(ratio >= 0 && ratio <= 1) {
			return nil, nil, cli.Usagef("--offload %s: a share is from 0 to 1", o.policy)
		}
		share.Ratio = &ratio
	} else if share.Policy, err = offload.ParsePolicy(o.policy); err != nil {
		return nil, nil, cli.WrongUsage(err)
	}
	if o.card != "" {
		if err := o.checkCard(in, share); err != nil {
			return nil, nil, err
		}
	}
	own := ownFlags{model: o.model, metrics: o.metrics}
	if share.Store, err = own.metricStore(); err != nil {
		return nil, nil, err
	}
	share.Model, share.ProfileTime = o.model, o.profile
	// The files of --local must have the same names as those of --in.
	order, err := dataset.ParseSort(in.sort)
	if err != nil {
		return nil, nil, cli.WrongUsage(err)
	}
	found, err := partitionfile.Resolver{Names: in.far.names, Sort: order, Root: source.ParseLocation(in.root)}.Find(
		cmd.Context(), source.ParseLocations(o.files...), partitionfile.Parquet)
	if err != nil {
		return nil, nil, adviseImport(err)
	}
	files, names := filename.Locations(found), filename.Names(found)
	ownDrives, err := local.Open(cmd.Context(), local.Config{Files: files, Names: names,
		DriveOptions: host.DriveOptions{Engine: host.EngineCPU, Source: remote.Source}, Manager: remote.Manager})
	if err != nil {
		return nil, nil, err
	}
	share.Local = ownDrives
	drives = local.NewElsewhere(remote)
	closers := []func() error{drives.Close, ownDrives.Close}
	if o.card != "" {
		card := local.NewElsewhere(local.Config{Files: files, Names: names, Manager: remote.Manager,
			DriveOptions: host.DriveOptions{Accelerator: o.card, Source: remote.Source}})
		share.Also = []trainmgr.RemoteStorage{{Storage: card, Cut: offload.Transforms}}
		closers = append(closers, card.Close)
	}
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("--offload-log: %w", err), ownDrives.Close())
		}
		var failed error
		encoder := json.NewEncoder(file)
		share.Record = func(r offload.Record) {
			if failed == nil {
				failed = encoder.Encode(r)
			}
		}
		closers = append(closers, func() error { return errors.Join(failed, file.Close()) })
	}
	return drives, func() error {
		var errs []error
		for _, f := range closers {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}, nil
}

// checkCard checks the flags beside --local-accelerator.
func (o *offloadFlags) checkCard(in *input, share *trainmgr.Offload) error {
	switch {
	case len(in.drives) == 0 || in.card != "":
		return cli.Usagef("--local-accelerator is a choice beside --drive: for an accelerator alone give --in and " +
			"--accelerator")
	case share.Ratio != nil:
		return cli.Usagef("--offload %s fixes a share, and so nothing is chosen: leave --local-accelerator out, or give "+
			"--offload a policy", o.policy)
	}
	return checkURI(o.card)
}

// printOffload prints how the splits were shared.
func printOffload(w io.Writer, r *trainmgr.OffloadReport) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "share of the drives\t%.1f%% of the splits now, %.1f%% decided before: %s\n", 100*r.Ratio,
		100*r.Decision.Ratio, r.Decision.Why)
	if r.Metrics != nil && len(r.Metrics.Candidates) > 1 {
		for _, c := range r.Metrics.Candidates {
			fmt.Fprintf(w, "cut %v\t%.0f rows/s with everything offloaded\n", c.Cut, c.Rthp)
		}
	}
	fmt.Fprintf(w, "made\t%s in %s here, %s in %s on drives; %s begun again\n", quantity.Of(r.LocalRows, "row"),
		quantity.Of(r.LocalSplits, "split"), quantity.Of(r.RemoteRows, "row"), quantity.Of(r.RemoteSplits, "split"),
		quantity.Of(r.Redone, "split"))
	if r.ProfileLeftOut {
		fmt.Fprintf(w, "profile\tleft out: the job takes less than five times as long; the share was changed %s since\n",
			quantity.Of(r.Retunings, "time"))
	} else {
		fmt.Fprintf(w, "profile\t%.2f s, %.1f%% of the whole; the share was changed %s since\n", r.ProfileSeconds,
			100*r.ProfileShare, quantity.Of(r.Retunings, "time"))
	}
	if r.LocalLimit > 0 {
		fmt.Fprintf(w, "limit of the own CPUs\t%.2f cores, by %s; %.2f CPU-s used, %.2f s waited\n",
			r.LocalLimit, r.LimitedBy, r.LocalCPUSeconds, r.LocalWaitSeconds)
	}
}
