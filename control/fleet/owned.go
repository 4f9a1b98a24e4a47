package fleet

import (
	"fmt"
	"slices"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// checkOwner returns an error if the name in a status belongs to another owner, or if the owner's launchers have
// registered as many workers as they may. A node that is known under the name, live or dead, keeps it until it is
// forgotten: tickets, leases and an operator's drain are by name.
func (f *Fleet) checkOwner(known *node, s *apiv1.NodeStatus) error {
	switch {
	case known != nil && known.status.GetOwner() != s.Owner:
		return fmt.Errorf("the name %s is taken by a node or worker of another owner: give this one another name",
			s.Name)
	case known != nil || s.Owner == "":
		return nil
	}
	n := 0
	for _, other := range f.nodes {
		if other.status.GetOwner() == s.Owner {
			n++
		}
	}
	if n >= MaxOwned {
		return fmt.Errorf("%d workers of %s's launchers are known, as many as there can be of one owner: end those that "+
			"no rank needs; a dead one is forgotten after %v", n, s.Owner, forgetOwned)
	}
	return nil
}

// keeps returns how long a dead node is listed.
func (f *Fleet) keeps(n *node) time.Duration {
	if n.status.GetOwner() != "" {
		return min(f.o.Forget, forgetOwned)
	}
	return f.o.Forget
}

// servesOneRank reports whether a node is a worker of a trainer's own CPUs. Such a worker comes and goes with its
// trainer and holds no partition on a drive, so no data set waits until it says what it holds.
func servesOneRank(s *apiv1.NodeStatus) bool {
	return s.GetOwner() != "" || len(s.GetDrives()) > 0 &&
		!slices.ContainsFunc(s.GetDrives(), func(d *apiv1.Drive) bool { return d.GetServes() == nil })
}
