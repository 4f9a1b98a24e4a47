package jobfiles

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// maxAnswer bounds the bytes of a member's answer: a piece, and the fields around it.
const maxAnswer = MaxPiece + 4<<10

// MemberSource returns the source that a member of a control plane is. base is its base URL.
func MemberSource(client *http.Client, base string) Source {
	member := apiv1connect.NewControlClient(client, base, connect.WithReadMaxBytes(maxAnswer))
	return Source{Name: base, Read: func(
		ctx context.Context, digest vocabulary.Digest, offset int64,
	) ([]byte, int64, error) {
		answer, err := member.ReadVocabulary(ctx, &apiv1.ReadVocabularyRequest{Sha256: digest[:], Offset: offset})
		if code := connect.CodeOf(err); err != nil && (code == connect.CodeNotFound ||
			code == connect.CodeUnimplemented || code == connect.CodePermissionDenied) {
			return nil, 0, fmt.Errorf("%w: %s", ErrMissing, err.Error())
		}
		if err != nil { // the code is the member's answer to this process, and not this process's to its caller
			return nil, 0, errors.New(err.Error())
		}
		return answer.Piece, answer.Bytes, nil
	}}
}
