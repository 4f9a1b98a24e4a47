package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk"
)

// examineTime bounds how long a drive, or a store, may take to answer.
const examineTime = 10 * time.Second

// Examine examines everything that a checked configuration names, as the user that runs this process: folders,
// certificates, addresses, the drive, and the stores of the partitions, which are listed. It changes nothing. stores
// opens URLs; nil means http and https.
func (c *Config) Examine(ctx context.Context, stores *source.Stores, now time.Time) []node.Finding {
	var findings []node.Finding
	conf := c.nodeConfig()
	for _, f := range conf.ExamineWith(ctx, now, identity.Launcher) {
		if f.Part != "drives" { // a worker has none of its own
			findings = append(findings, f)
		}
	}
	if own, err := c.identity().Own(); err == nil && own.Role == identity.Launcher && len(c.Partitions) > 0 {
		findings = append(findings, node.Finding{Part: "tls", Level: node.Problem, Says: errLauncherPartitions.Error()})
	}
	add := func(part string, err error, fine string) {
		f := node.Finding{Part: part, Level: node.Fine, Says: fine}
		if err != nil {
			f.Level, f.Says = node.Problem, err.Error()
		}
		findings = append(findings, f)
	}
	if c.Drive != "" {
		f := node.Finding{Part: "drive " + c.Drive, Level: node.Fine, Says: "can be opened, and computes"}
		busy := (*csd.BusyError)(nil)
		switch err := examineDrive(ctx, c.Drive); {
		case errors.As(err, &busy):
			f.Level, f.Says = node.Warning, err.Error()+": by this worker, if it runs"
		case err != nil:
			f.Level, f.Says = node.Problem, err.Error()
		}
		findings = append(findings, f)
	}
	for i, pattern := range source.ParseLocations(c.Partitions...) {
		n, err := examineStore(ctx, c.boundStores(stores), pattern)
		add(fmt.Sprintf("partitions[%d] %s", i, pattern), err, quantity.Of(n, "partition"))
	}
	return findings
}

// examineDrive opens a drive, and checks that it computes.
func examineDrive(ctx context.Context, uri string) error {
	if strings.HasPrefix(uri, "mem:") {
		return nil // it is made when the worker starts
	}
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	drive, err := sdk.Open(ctx, uri, sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	if !drive.HasCompute() {
		err = sdk.ErrNoCompute
	}
	return errors.Join(err, drive.Close())
}

// examineStore lists what a pattern matches, opens the first partition, and returns how many there are.
func examineStore(ctx context.Context, stores source.Opener, pattern source.Location) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	files, err := partitionfile.Resolver{Opener: stores}.Expand(ctx, []source.Location{pattern}, partitionfile.Parquet)
	if err != nil || len(files) == 0 {
		return 0, err
	}
	first, err := stores.Open(ctx, files[0], source.Identity{})
	if err != nil {
		return 0, err
	}
	return len(files), first.Close()
}
