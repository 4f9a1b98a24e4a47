package errorcode

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/ticket"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
)

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   connect.Code
		status int
	}{
		{ErrRequest, connect.CodeInvalidArgument, http.StatusBadRequest},
		{fmt.Errorf("drive d0: %w", ErrUnavailable), connect.CodeUnavailable, http.StatusServiceUnavailable},
		{ErrTooMany, connect.CodeResourceExhausted, http.StatusServiceUnavailable},
		{sdk.ErrRegionOwned, connect.CodeResourceExhausted, http.StatusServiceUnavailable},
		{api.ErrUnknownJob, connect.CodeNotFound, http.StatusNotFound},
		{volume.ErrExists, connect.CodeAlreadyExists, http.StatusConflict},
		{ticket.ErrNone, connect.CodeUnauthenticated, http.StatusUnauthorized},
		{ticket.ErrVoid, connect.CodePermissionDenied, http.StatusForbidden},
		{partition.ErrData, connect.CodeDataLoss, http.StatusInternalServerError},
		// The first error of the table decides, even if an error wraps others beside it.
		{fmt.Errorf("%w: %w", ErrUnavailable, api.ErrUnknownJob), connect.CodeUnavailable,
			http.StatusServiceUnavailable},
		{errors.New("the connection was reset"), connect.CodeUnavailable, http.StatusServiceUnavailable},
		{connect.NewError(connect.CodeAborted, errors.New("x")), connect.CodeAborted, http.StatusConflict},
	} {
		assert.Equal(t, c.code, Of(c.err), "%v", c.err)
		w := httptest.NewRecorder()
		Write(w, c.err)
		assert.Equal(t, c.status, w.Code, "%v", c.err)
		assert.Contains(t, w.Body.String(), `"code":"`+c.code.String()+`"`)
		assert.Equal(t, c.status == http.StatusServiceUnavailable, w.Header().Get("Retry-After") != "")
	}
}

// TestRPC checks that Connect's own errors are not wrapped again, and that nil stays nil.
func TestRPC(t *testing.T) {
	assert.NoError(t, RPC(nil))
	own := connect.NewError(connect.CodeUnimplemented, errors.New("x"))
	assert.Same(t, own, RPC(own))
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(RPC(fmt.Errorf("job 1: %w", api.ErrUnknownJob))))
}
