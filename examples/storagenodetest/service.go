// Package storagenodetest shows how a test of a program that uses Millrace starts the services that the program talks
// to: a control plane and a storage node with one drive, in the test's own process, on ports of their own.
//
// Start is the code to take over. The test beside it submits a job to the service, trains on it as one rank, and
// prints how many rows came; the example in examples/python trains on the same service from Python.
package storagenodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/trainmgr/remote"
)

// Service is a control plane with one storage node.
type Service struct {
	control *control.Server
	node    *node.Agent
}

// Partition is a file that lies on the node's drive.
type Partition struct {
	Name    string
	Bytes   int64
	Content io.Reader
}

// Start puts the partitions on a new drive in folder, which must be empty, and starts a control plane and a storage
// node that serves the drive. It returns when the control plane knows the node. Close ends both.
func Start(ctx context.Context, folder string, partitions ...Partition) (_ *Service, err error) {
	uri := "file:" + filepath.Join(folder, "d0.flash") + "?size=16MiB&slm=64MiB"
	if err := fill(ctx, uri, partitions); err != nil {
		return nil, err
	}
	s := &Service{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.control, err = control.Start(ctx, control.Options{
		Data:   filepath.Join(folder, "control"),
		Listen: "127.0.0.1:0",
		Beat:   100 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := s.control.WaitReady(ctx); err != nil {
		return nil, err
	}
	config, err := node.ParseConfig(fmt.Appendf(nil, `
name: node0
listen: ["127.0.0.1:0"]
control: [%q]
drives:
  - {name: d0, uri: %q}
measure: 10ms
`, s.control.URL(), uri))
	if err != nil {
		return nil, err
	}
	if s.node, err = node.Start(ctx, config, node.Options{}); err != nil {
		return nil, err
	}
	return s, s.waitForNode(ctx)
}

// URL returns the address of the control plane, which launchers are given.
func (s *Service) URL() string { return s.control.URL() }

// Close ends the node and the control plane.
func (s *Service) Close() error {
	var errs []error
	if s.node != nil {
		errs = append(errs, s.node.Close())
	}
	if s.control != nil {
		errs = append(errs, s.control.Close())
	}
	return errors.Join(errs...)
}

// waitForNode waits until the control plane lists the node's partitions.
func (s *Service) waitForNode(ctx context.Context) (err error) {
	client, err := remote.Dial(remote.Options{Control: []string{s.URL()}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for {
		nodes, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if len(n.GetStatus().GetPartitions()) > 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node has not registered: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fill makes a drive and puts the partitions on its volume.
func fill(ctx context.Context, uri string, partitions []Partition) (err error) {
	device, err := sdk.Create(ctx, uri, sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	members, err := volume.Open(ctx, device)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if err := members.Put(ctx, p.Name, p.Bytes, p.Content); err != nil {
			return fmt.Errorf("put %s: %w", p.Name, err)
		}
	}
	return nil
}
