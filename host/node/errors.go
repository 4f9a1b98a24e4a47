package node

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
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

var (
	// ErrUnavailable says that a drive is not there now; it may come back.
	ErrUnavailable = errors.New("the drive is not available")
	// ErrRequest says that a request makes no sense.
	ErrRequest = errors.New("request")
	// ErrTooMany says that a limit of the configuration is reached.
	ErrTooMany = errors.New("too many")
)

// kinds are errors and the codes that they leave the node with; the first that matches holds.
var kinds = []struct {
	err  error
	code connect.Code
}{
	{ErrRequest, connect.CodeInvalidArgument},
	{partitions.ErrRequest, connect.CodeInvalidArgument},
	{inspection.ErrKind, connect.CodeInvalidArgument},
	{heartbeat.ErrReplaced, connect.CodeFailedPrecondition},
	{ErrTooMany, connect.CodeResourceExhausted},
	{api.ErrBusy, connect.CodeResourceExhausted},
	{sdk.ErrSLMFull, connect.CodeResourceExhausted},
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
	{host.ErrDigest, connect.CodeFailedPrecondition},
	{host.ErrSchema, connect.CodeFailedPrecondition},
	{volume.ErrExists, connect.CodeAlreadyExists},
	{volume.ErrName, connect.CodeInvalidArgument},
	{volume.ErrSize, connect.CodeDataLoss},
	{fs.ErrNotExist, connect.CodeNotFound},
	{partitions.ErrCopy, connect.CodeDataLoss},
	{sdk.ErrData, connect.CodeDataLoss},
	{sdk.ErrSchema, connect.CodeDataLoss},
	{sdk.ErrUnsupported, connect.CodeDataLoss},
	{sdk.ErrPartition, connect.CodeDataLoss},
	{nvme.UnrecoveredReadError, connect.CodeDataLoss},
	{dataset.ErrNumber, connect.CodeInvalidArgument},
	{dataset.ErrOptions, connect.CodeInvalidArgument},
	{dataset.ErrManifest, connect.CodeInvalidArgument},
	{pipeline.ErrUnsupported, connect.CodeFailedPrecondition},
	{sdk.ErrPanic, connect.CodeUnavailable}, // another drive, or the same when it is open again, may do it
	{context.Canceled, connect.CodeCanceled},
	{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
}

// codeOf is the code that an error leaves the node with. What nobody foresaw came from the drive or its transport: try again elsewhere.
func codeOf(err error) connect.Code {
	if c := new(connect.Error); errors.As(err, &c) {
		return c.Code()
	}
	if slm := (*sdk.ErrSLM)(nil); errors.As(err, &slm) {
		return connect.CodeDataLoss // it would fail again here
	}
	if p := (*pipeline.Error)(nil); errors.As(err, &p) {
		return connect.CodeFailedPrecondition
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.code
		}
	}
	return connect.CodeUnavailable
}

// rpcError is an error as Connect sends it.
func rpcError(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(codeOf(err), err)
}

// httpStatus is the status of a code on the plain bindings. What may be asked again soon is 503.
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

// retryAfter is how many seconds a client is told to wait.
const retryAfter = 1

// writeError answers a plain request with {"code", "message"}.
func writeError(w http.ResponseWriter, err error) {
	code := codeOf(err)
	status := httpStatus(code)
	h := w.Header()
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	b, merr := json.Marshal(map[string]string{"code": code.String(), "message": err.Error()})
	if merr != nil { // strings marshal
		b = fmt.Appendf(nil, `{"code":%q}`, code.String())
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// driveFault tells that a split failed in a way that puts the drive in question: not by what it read or was asked for, not because it was ended, and
// not because somebody keeps splits away.
func driveFault(err error) bool {
	for _, ours := range []error{splits.ErrStopped, splits.ErrDraining, ErrUnavailable, host.ErrSuspended} {
		if errors.Is(err, ours) {
			return false
		}
	}
	return errors.Is(err, sdk.ErrPanic) || codeOf(err) == connect.CodeUnavailable
}
