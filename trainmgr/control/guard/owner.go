package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/identity"
)

// ErrOwner says that a job belongs to somebody else.
var ErrOwner = errors.New("the job belongs to another launcher")

// Owner names who may use a job that this peer submits: launchers whose name begins the same up to the first dot, so that the
// ranks of one trainer on several hosts ("ads.host-3") share it. Empty: everybody.
func Owner(id identity.Identity) string {
	if id.Role != identity.Launcher {
		return ""
	}
	name, _, _ := strings.Cut(id.Name, ".")
	return name
}

// MayUse returns an error unless the peer may use a job of the owner.
func MayUse(ctx context.Context, jobOwner string) error {
	id := Peer(ctx)
	if id.Role != identity.Launcher || jobOwner == "" || Owner(id) == jobOwner {
		return nil
	}
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%w: %s, you are %s", ErrOwner, jobOwner, id.Name))
}
