package node

import (
	"context"
	"net/http"
	"runtime"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/sdk/dataset"
)

// ElsewhereOptions describe a drive of reach any: it holds no partition. This machine's CPU makes its splits, or the
// drive that Drive.Accelerator names.
type ElsewhereOptions struct {
	Drive host.DriveOptions
	// Serves is the only rank that the drive makes splits for; nil: every rank.
	Serves *apiv1.RankName
	Open   func(Network) (host.Elsewhere, error) // makes what partitions are read by; called once
}

// served returns the only rank that the drive makes splits for, or nil.
func (o *ElsewhereOptions) served() *apiv1.RankName {
	if o == nil {
		return nil
	}
	return o.Serves
}

// Network is the part of its node that a reader of partitions uses.
type Network struct {
	Client *http.Client // towards other nodes, with the node's identity
	// Locate asks the control plane where partitions of a job lie, by name.
	Locate func(ctx context.Context, job dataset.Digest, partitions []string) ([]api.Source, error)
}

// driveConfigs returns the node's drives: those of the configuration, and one of reach any if there is one.
func (a *Agent) driveConfigs(c *Config, o *Options) ([]drives.Config, error) {
	list := c.driveConfigs(runtime.GOMAXPROCS(0))
	if o.Elsewhere == nil {
		return list, nil
	}
	from, err := o.Elsewhere.Open(Network{Client: a.toNodes, Locate: a.heartbeat.Locate})
	if err != nil {
		return nil, err
	}
	return append(list, drives.Config{
		Name: o.Elsewhere.Drive.Name, Host: o.Elsewhere.Drive,
		Open: func(ctx context.Context, o host.DriveOptions) (*host.Drive, error) {
			return host.OpenElsewhere(ctx, o, from)
		},
	}), nil
}
