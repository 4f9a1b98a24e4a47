package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/metricfile"
	"github.com/millrace/millrace/trainmgr/remote"
)

// ownFlags are the flags of a rank whose own CPUs are a worker of the job.
type ownFlags struct {
	files   []string // They hold the same partitions.
	offload string   // empty: splits are not shared out
	model   string   // under whose name the profile is kept; empty: it is not kept
	metrics string   // file in which profiles are kept; empty: the default
}

// metricStore returns the store of profiles, or nil if the profile is not kept.
func (o *ownFlags) metricStore() (trainmgr.MetricStore, error) {
	if o.model == "" {
		if o.metrics != "" {
			return nil, cli.Usagef("--offload-metrics wants --offload-model: a profile is kept under the model's name")
		}
		return nil, nil
	}
	return metricfile.New(o.metrics)
}

// reads describes from where the rank's own worker reads partitions.
func (o *ownFlags) reads() string {
	if len(o.files) > 0 {
		return "files"
	}
	return "nodes"
}

// startOwnWorker makes this rank's own CPUs a worker that serves the rank alone, where the job wants that; started
// reports whether it does. The caller calls the returned function when the rank has ended.
func (c *trainCommand) startOwnWorker(ctx context.Context, client *remote.Client, own *ownFlags, to contexts.Target,
	id string, logger *slog.Logger) (closeWorker func() error, started bool, err error) {
	status, err := client.Get(ctx, id)
	if err != nil {
		return nil, false, err
	}
	if spec := status.GetSpec(); spec.GetOffload() == "" && spec.GetPlacement() != string(record.PlacementTrainer) {
		if len(own.files) > 0 || c.service.ownWorker != "" || own.model != "" {
			return nil, false, cli.Usagef("job %s makes no use of this rank's own CPUs: submit it with --offload or "+
				"--placement %s", status.GetId(), record.PlacementTrainer)
		}
		return func() error { return nil }, false, nil
	}
	conf := worker.DefaultConfig()
	if c.service.ownWorker != "" {
		if conf, err = worker.ReadConfig(c.service.ownWorker); err != nil {
			return nil, false, cli.WrongUsage(err)
		}
	}
	if len(conf.Control) == 0 {
		conf.Control = to.Control
	}
	if conf.TLS == (node.TLSConfig{}) {
		conf.TLS = node.TLSConfig{Cert: to.Identity.Cert, Key: to.Identity.Key, CA: to.Identity.CA}
	}
	conf.Local = append(conf.Local, own.files...)
	waiting, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	agent, err := worker.Start(ctx, conf, worker.Options{Logger: logger, Version: buildVersion().Version,
		Serves: &worker.Rank{Job: status.GetId(), Number: c.service.rank}, Denied: deny})
	if err == nil {
		if err = client.AwaitOwnWorker(waiting, status.GetId(), c.service.rank); err != nil {
			err = errors.Join(err, agent.Close())
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("this rank's own CPUs: %w", err)
	}
	return agent.Close, true, nil
}
