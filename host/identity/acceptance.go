package identity

import "fmt"

// Acceptance decides which identities a caller accepts as servers. It is asked while the connection is made, before
// the caller shows its certificate or sends a request. Its error wraps ErrPeer.
type Acceptance func(server Identity) error

// AcceptService accepts the servers of the service: members of the control plane, and nodes.
func AcceptService(server Identity) error {
	if server.Role != Control && server.Role != Node {
		return fmt.Errorf("%w: %s is neither a control plane nor a node", ErrPeer, server)
	}
	return nil
}

// AcceptOwned accepts the workers of one owner's launchers, and no other server. An empty owner has none.
func AcceptOwned(owner string) Acceptance {
	return func(server Identity) error {
		if owner == "" || server.Owner() != owner {
			return fmt.Errorf("%w: %s is no launcher of %q, whose worker is called", ErrPeer, server, owner)
		}
		return nil
	}
}

// AcceptMakers accepts the servers from which a caller takes mini-batches: those of the service and, if the caller is
// a launcher, the workers of its owner's launchers.
func AcceptMakers(caller Identity) Acceptance {
	return func(server Identity) error {
		if owner := caller.Owner(); owner != "" && server.Owner() == owner {
			return nil
		}
		return AcceptService(server)
	}
}
