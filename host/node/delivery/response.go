package delivery

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/tensor/arrowipc"
)

// body is the body of a response: its media type, its length, and the bytes.
type body struct {
	mediaType string
	length    int64
	io.WriterTo
}

// encodeBody encodes a mini-batch in the format that the request accepts: a frame, whose tensors are not copied, or an
// Arrow IPC file. A fragment has frames alone, since a file would look like that of the whole mini-batch.
func encodeBody(r *http.Request, mb *tensor.MiniBatch) (body, error) {
	if strings.Contains(r.Header.Get("Accept"), apiv1.ArrowType) {
		if mb.Fragment != (tensor.Fragment{}) {
			return body{}, fmt.Errorf("%w: mini-batch %v has rows of other splits too, and this is fragment %v: fragments "+
				"have no Arrow file, accept %s and join them", errorcode.ErrRequest, mb.Name, mb.Fragment, apiv1.FrameType)
		}
		file, err := arrowFile(mb)
		if err != nil {
			return body{}, err
		}
		return body{apiv1.ArrowType, int64(file.Len()), file}, nil
	}
	frame, err := tensor.EncodeFrame(mb)
	if err != nil {
		return body{}, err
	}
	return body{apiv1.FrameType, frame.Len(), frame}, nil
}

// arrowFile returns a mini-batch as an Arrow IPC file.
func arrowFile(mb *tensor.MiniBatch) (*bytes.Buffer, error) {
	b := &bytes.Buffer{}
	b.Grow(int(mb.Bytes()) + 16<<10)
	w, err := arrowipc.NewWriter(b, mb.Schema)
	if err == nil {
		err = w.Write(mb)
	}
	if err == nil {
		err = w.Close()
	}
	return b, err
}

// write writes a response and gives its mini-batch back. It returns the length of a response that was written whole,
// and 0 for HEAD and for a client that did not take all of it. An error that write returns can still be sent to the
// client.
func (s *Server) write(w http.ResponseWriter, r *http.Request, response *splits.Response) (n int64, err error) {
	written := false
	defer func() { s.o.Splits.Done(response, written) }()
	mb := response.MiniBatch()
	body, err := encodeBody(r, mb)
	if err != nil {
		return 0, err
	}
	w.Header().Set("Content-Type", body.mediaType)
	w.Header().Set("Content-Length", strconv.FormatInt(body.length, 10))
	if r.Method == http.MethodHead {
		return 0, nil
	}
	// A client that takes nothing must not hold the drive's memory.
	deadline := time.Now().Add(s.o.WriteTime + time.Duration(body.length>>24)*time.Second)
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(deadline); err != nil {
		s.o.Log.Debug("no write deadline", "error", err)
	}
	if s.o.Splits.Stopped(response) { // the deadline above has replaced the deadline with which Splits ends a response
		return 0, splits.ErrStopped
	}
	_, err = body.WriteTo(w)
	if err == nil {
		err = control.Flush()
	}
	if err != nil {
		s.o.Log.Debug("mini-batch not written", "digest", host.ShortDigest(dataset.Digest(mb.Name.Job)),
			"number", mb.Name.Number, "error", err)
		s.o.Counter.CutOff()
		return 0, nil
	}
	written = true
	return body.length, nil
}
