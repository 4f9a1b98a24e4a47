package control

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
)

// maxOwnStatus bounds the status of a launcher's worker in bytes: one drive, a few jobs, and no partition.
const maxOwnStatus = 32 << 10

// errOwnWorker says that a launcher may not register a worker as its status describes it.
var errOwnWorker = errors.New("own worker refused")

// checkRegistration returns an error unless the caller of a heartbeat may register what the status describes, and
// notes in the status which owner's launcher registers it. A node registers under the name of its certificate. A
// launcher registers the workers of its own CPUs. A caller that is not asked for an identity may register everything.
func checkRegistration(jobs map[string]*job, caller identity.Identity, s *apiv1.NodeStatus) error {
	if s == nil {
		return nil // the fleet refuses it
	}
	s.Owner = caller.Owner()
	var err error
	switch {
	case caller.Role == identity.Node && s.Name != caller.Name:
		err = fmt.Errorf("node %s beats for node %s: a node's name is its certificate's; change name in its "+
			"configuration, or issue it another (millrace pki issue --role node --name NAME)", caller.Name,
			quoteShort(s.Name))
	case caller.Role == identity.Launcher:
		if err = checkOwnWorker(jobs, caller, s); err != nil {
			err = fmt.Errorf("%w: %s registers %s: %w", errOwnWorker, caller, quoteShort(s.Name), err)
		}
	}
	if err != nil {
		return connect.NewError(connect.CodePermissionDenied, err)
	}
	return nil
}

// checkOwnWorker returns an error unless a launcher may register a worker with this status. Every drive serves one
// rank of a job of the launcher's owner and holds nothing, so that the worker can harm only the owner's own jobs. Its
// name and its URLs can be no node's. The whole status is checked with every heartbeat.
func checkOwnWorker(jobs map[string]*job, launcher identity.Identity, s *apiv1.NodeStatus) error {
	if n := proto.Size(s); n > maxOwnStatus {
		return fmt.Errorf("its status has %d bytes, at most %d", n, maxOwnStatus)
	}
	if !strings.HasPrefix(s.Name, apiv1.OwnWorkerPrefix) ||
		(identity.Identity{Role: identity.Node, Name: s.Name}).Check() != nil {
		return fmt.Errorf("a launcher's certificate is enough for workers that are called %s..., of 1 to 63 of a-z, 0-9, "+
			"dot and hyphen: change the worker's name, or give it a certificate of the role node", apiv1.OwnWorkerPrefix)
	}
	for _, u := range s.Urls {
		if !strings.HasPrefix(u, "https://") {
			return fmt.Errorf("it is to be called at %s: a worker with a launcher's certificate is called at https: URLs "+
				"only, where it shows the certificate: change listen or advertise in its configuration", quoteShort(u))
		}
	}
	if len(s.Partitions) > 0 || len(s.Sources) > 0 || len(s.Schemas) > 0 {
		return errors.New("it announces partitions: only nodes do, with a certificate of the role node; name files of this " +
			"machine in local (--local), and leave partitions out")
	}
	if len(s.Drives) == 0 {
		return errors.New("it has no drive")
	}
	for _, d := range s.Drives {
		if err := checkOwnDrive(jobs, launcher, d); err != nil {
			return err
		}
	}
	return nil
}

// checkOwnDrive checks one drive for checkOwnWorker.
func checkOwnDrive(jobs map[string]*job, launcher identity.Identity, d *apiv1.Drive) error {
	serves := d.GetServes()
	if len(d.GetPartitions()) > 0 || !fleet.ReachesAny(d) || serves == nil {
		return fmt.Errorf("its drive %s does not serve one rank alone: a launcher's certificate is enough for nothing else; "+
			"start it with --serves JOB/RANK, or give it a certificate of the role node", quoteShort(d.GetName()))
	}
	j := jobs[serves.Job]
	switch {
	case j != nil && j.Owner == "":
		return fmt.Errorf("job %s has no owner: a launcher's worker serves jobs of its owner only; have the launcher submit "+
			"the job, or an operator with --owner %s, or give the worker a certificate of the role node", j.ID,
			launcher.Owner())
	case j == nil || j.Owner != launcher.Owner():
		return fmt.Errorf("%s has no job %s: a launcher's worker serves jobs of its owner only; take the id from millrace "+
			"jobs list", launcher.Owner(), quoteShort(serves.Job))
	case serves.Rank >= j.spec.Ranks:
		return fmt.Errorf("job %s has %d ranks, and its drive %s serves rank %d: ranks count from 0", j.ID, j.spec.Ranks,
			quoteShort(d.GetName()), serves.Rank)
	}
	return nil
}
