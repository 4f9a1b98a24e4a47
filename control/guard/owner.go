package guard

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/identity"
)

// ErrOwner says that a job belongs to another launcher.
var ErrOwner = errors.New("the job belongs to another launcher")

// ErrOperators says that only operators may do something to a job.
var ErrOperators = errors.New("the job is an operator's")

// MayUse returns an error unless the peer may see a job of the owner, attach to it and take its mini-batches. Operators
// and launchers of the owner may; where there is no owner, every launcher may.
func MayUse(ctx context.Context, jobOwner string) error {
	id := Peer(ctx)
	if id.Role != identity.Launcher || jobOwner == "" || id.Owner() == jobOwner {
		return nil
	}
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%w: %s, you are %s", ErrOwner, jobOwner, id.Name))
}

// MayEnd returns an error unless the peer may cancel a job of the owner: operators may, and launchers of the owner. A
// job without an owner belongs to an operator, and every launcher may use it but not cancel it.
func MayEnd(ctx context.Context, jobOwner string) error {
	if err := MayUse(ctx, jobOwner); err != nil {
		return err
	}
	if id := Peer(ctx); id.Role == identity.Launcher && jobOwner == "" {
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%w: ask one to cancel it, you are %s",
			ErrOperators, id))
	}
	return nil
}

// owners matches owners: names of identities, without a dot.
var owners = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// OwnerFor returns the owner of a job that the peer submits: the owner that the peer asks for, or else the peer
// itself. Only operators, and callers that are not asked for their identity, may ask for another owner.
func OwnerFor(ctx context.Context, asked string) (string, error) {
	id := Peer(ctx)
	switch own := id.Owner(); {
	case asked == "" || asked == own:
		return own, nil
	case id.Role == identity.Launcher:
		return "", connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("%w: a launcher's jobs are its own (%s), and not %.80q's", ErrOwner, own, asked))
	case !owners.MatchString(asked):
		return "", connect.NewError(connect.CodeInvalidArgument,
			fmt.Errorf("owner %.80q: want the name in a launcher's certificate up to its first dot: 1 to 63 of a-z, "+
				"0-9 and hyphen", asked))
	}
	return asked, nil
}
