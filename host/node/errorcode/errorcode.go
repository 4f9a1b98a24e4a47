package errorcode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/extents"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/vocabulary"
)

var (
	// ErrUnavailable says that a drive is not open now. It may come back.
	ErrUnavailable = errors.New("the drive is not available")
	// ErrRequest says that a request makes no sense.
	ErrRequest = errors.New("request")
	// ErrTooMany says that a limit of the node's configuration is reached.
	ErrTooMany = errors.New("too many")
)

// codes are the errors that the node tells apart, and the code of each. The first error that matches decides.
var codes = []struct {
	err  error
	code connect.Code
}{
	{ErrRequest, connect.CodeInvalidArgument},
	{partitions.ErrRequest, connect.CodeInvalidArgument},
	{inspection.ErrKind, connect.CodeInvalidArgument},
	{jobfiles.ErrRequest, connect.CodeInvalidArgument},
	{jobfiles.ErrFetching, connect.CodeAborted},
	{jobfiles.ErrRoom, connect.CodeResourceExhausted},
	{jobfiles.ErrMissing, connect.CodeUnavailable}, // a member that has it may come back
	{jobfiles.ErrDigest, connect.CodeDataLoss},
	{vocabulary.ErrDamaged, connect.CodeDataLoss},
	{selection.ErrDamaged, connect.CodeDataLoss},
	{selection.ErrVersion, connect.CodeFailedPrecondition},
	{problem.ErrSelection, connect.CodeFailedPrecondition},
	{vocabulary.ErrVersion, connect.CodeFailedPrecondition},
	{host.ErrSource, connect.CodeUnavailable}, // whatever could not be read: it may be read elsewhere, or later
	{heartbeat.ErrReplaced, connect.CodeFailedPrecondition},
	{ErrTooMany, connect.CodeResourceExhausted},
	{api.ErrBusy, connect.CodeResourceExhausted},
	{sdk.ErrSLMFull, connect.CodeResourceExhausted},
	{sdk.ErrRegionOwned, connect.CodeResourceExhausted}, // until the other host has given its memory back
	{volume.ErrFull, connect.CodeResourceExhausted},
	{splits.ErrOwner, connect.CodeResourceExhausted},
	{ticket.ErrNone, connect.CodeUnauthenticated},
	{ticket.ErrVoid, connect.CodePermissionDenied},
	{ticket.ErrKey, connect.CodeUnavailable},
	{splits.ErrDraining, connect.CodeUnavailable},
	{splits.ErrStopped, connect.CodeUnavailable},
	{ErrUnavailable, connect.CodeUnavailable},
	{host.ErrSuspended, connect.CodeUnavailable},
	{identity.ErrPeer, connect.CodePermissionDenied},
	{api.ErrUnknownJob, connect.CodeNotFound},
	{api.ErrUnknownDrive, connect.CodeNotFound},
	{host.ErrNotHeld, connect.CodeFailedPrecondition},
	{host.ErrChanged, connect.CodeFailedPrecondition},
	{extents.ErrMoved, connect.CodeFailedPrecondition},
	{host.ErrFormat, connect.CodeFailedPrecondition},
	{host.ErrDigest, connect.CodeFailedPrecondition},
	{host.ErrSchema, connect.CodeFailedPrecondition},
	{volume.ErrExists, connect.CodeAlreadyExists},
	{volume.ErrName, connect.CodeInvalidArgument},
	{volume.ErrSize, connect.CodeDataLoss},
	{fs.ErrNotExist, connect.CodeNotFound},
	{partitions.ErrCopy, connect.CodeDataLoss},
	{partition.ErrData, connect.CodeDataLoss},
	{partition.ErrSchema, connect.CodeDataLoss},
	{partition.ErrUnsupported, connect.CodeDataLoss},
	{partition.ErrUnreadable, connect.CodeDataLoss},
	{nvme.UnrecoveredReadError, connect.CodeDataLoss},
	{dataset.ErrNumber, connect.CodeInvalidArgument},
	{dataset.ErrOptions, connect.CodeInvalidArgument},
	{dataset.ErrManifest, connect.CodeInvalidArgument},
	{problem.ErrUnsupported, connect.CodeFailedPrecondition},
	{sdk.ErrModule, connect.CodeFailedPrecondition}, // until another image is active, or the node's configuration changes
	{processor.ErrPanic, connect.CodeUnavailable},   // another drive, or the same one when it is open again, may succeed
	{context.Canceled, connect.CodeCanceled},
	{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
}

// Of returns the code that an error leaves the node with. An error that is not listed came from a drive or its
// transport, and has the code unavailable: the client may try again elsewhere.
func Of(err error) connect.Code {
	if rpc := (*connect.Error)(nil); errors.As(err, &rpc) {
		return rpc.Code()
	}
	if slm := (*slicer.MemoryError)(nil); errors.As(err, &slm) {
		return connect.CodeDataLoss // it would fail again here
	}
	if unknown := (*vocabulary.UnknownError)(nil); errors.As(err, &unknown) {
		return connect.CodeDataLoss // a row whose id the vocabulary lacks fails on every node
	}
	if p := (*problem.Error)(nil); errors.As(err, &p) {
		return connect.CodeFailedPrecondition
	}
	if changed := (*source.ChangedError)(nil); errors.As(err, &changed) {
		return connect.CodeFailedPrecondition
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return connect.CodeUnavailable
}

// RPC returns an error as Connect sends it, and nil for nil. An error of Connect itself stays as it is.
func RPC(err error) error {
	if err == nil {
		return nil
	}
	// An error that wraps one of Connect's is not Connect's own, and its text would be lost.
	if rpc := (*connect.Error)(nil); errors.As(err, &rpc) && errors.Is(rpc, err) {
		return err
	}
	return connect.NewError(Of(err), err)
}

// httpStatus returns the status of a code on the bindings outside Connect. A request that may succeed soon has 503.
func httpStatus(code connect.Code) int {
	switch code {
	case connect.CodeInvalidArgument, connect.CodeFailedPrecondition, connect.CodeOutOfRange:
		return http.StatusBadRequest
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodeAlreadyExists, connect.CodeAborted:
		return http.StatusConflict
	case connect.CodePermissionDenied:
		return http.StatusForbidden
	case connect.CodeUnauthenticated:
		return http.StatusUnauthorized
	case connect.CodeDeadlineExceeded:
		return http.StatusGatewayTimeout
	case connect.CodeUnavailable, connect.CodeResourceExhausted, connect.CodeCanceled:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// retryAfter is how many seconds a client should wait before it sends a request with status 503 again.
const retryAfter = 1

// Write answers a request outside Connect with an error: its status, and {"code", "message"} as JSON.
func Write(w http.ResponseWriter, err error) {
	code := Of(err)
	status := httpStatus(code)
	h := w.Header()
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	body, marshalErr := json.Marshal(map[string]string{"code": code.String(), "message": err.Error()})
	if marshalErr != nil { // strings marshal
		body = fmt.Appendf(nil, `{"code":%q}`, code.String())
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}
