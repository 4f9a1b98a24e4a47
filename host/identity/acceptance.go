package identity

import "fmt"

// Acceptance decides which identities a caller accepts as servers. It is asked while the connection is made, before
// the caller shows its certificate or sends a request. Its error wraps ErrPeer.
type Acceptance func(server Identity) error

// AcceptControl accepts members of the control plane. A node may be called by the same host name: its certificate is
// good for that name, and not for this.
func AcceptControl(server Identity) error {
	if server.Role != Control {
		return fmt.Errorf("%w: %s is not a member of the control plane, which is called", ErrPeer, server)
	}
	return nil
}

// AcceptNode accepts nodes.
func AcceptNode(server Identity) error {
	if server.Role != Node {
		return fmt.Errorf("%w: %s is not a node, which is called", ErrPeer, server)
	}
	return nil
}

// AcceptService accepts members of the control plane, and nodes. It is for callers that may call either.
func AcceptService(server Identity) error {
	if server.Role != Control {
		return AcceptNode(server)
	}
	return nil
}

// AcceptOwned accepts the workers of one owner's launchers, and no other server. An empty owner has none.
func AcceptOwned(owner string) Acceptance {
	return func(server Identity) error {
		if owner == "" || server.Owner() != owner {
			return fmt.Errorf("%w: %s is not a launcher of %q, whose worker is called", ErrPeer, server, owner)
		}
		return nil
	}
}

// AcceptMakers accepts the servers from which a caller takes mini-batches: nodes and, if the caller is a launcher, the
// workers of its owner's launchers.
func AcceptMakers(caller Identity) Acceptance {
	return func(server Identity) error {
		if owner := caller.Owner(); owner != "" && server.Owner() == owner {
			return nil
		}
		return AcceptNode(server)
	}
}
