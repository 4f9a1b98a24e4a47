package httpbody

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millrace/millrace/internal/lograte"
)

// MessageOptions say how a service's messages are bounded. Most is required.
type MessageOptions struct {
	Most   func(procedure string) int64 // bytes of the message of a call, unpacked
	Peer   func(*http.Request) string   // names the peer that calls; nil: all calls are of one peer
	Logger *slog.Logger                 // nil: no log
}

// Messages stands before a Connect service. It reads and unpacks the message of each call, and passes the call on
// when there is memory for it. The memory is given back when next returns. Every call of the service must take one
// message; its answer may be a stream.
func (b *Budget) Messages(o MessageOptions, next http.Handler) http.Handler {
	if o.Peer == nil {
		o.Peer = func(*http.Request) string { return "" }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &messages{b: b, o: o, next: next, errors: connect.NewErrorWriter()}
}

type messages struct {
	b      *Budget
	o      MessageOptions
	next   http.Handler
	sizes  sizes
	errors *connect.ErrorWriter
	lines  lograte.Limiter
}

// form is how a call's message is written.
type form struct {
	enveloped bool
	json      bool
	packing   string // the header that names it
}

// formOf reads a content type. Connect refuses others without reading their bodies.
func formOf(contentType string) (form, bool) {
	mime, _, _ := strings.Cut(contentType, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	switch mime {
	case "application/proto", "application/json":
		return form{json: mime == "application/json", packing: "Content-Encoding"}, true
	case "application/grpc", "application/grpc-web":
		return form{enveloped: true, packing: "Grpc-Encoding"}, true
	}
	for prefix, packing := range map[string]string{
		"application/grpc+": "Grpc-Encoding", "application/grpc-web+": "Grpc-Encoding",
		"application/connect+": "Connect-Content-Encoding",
	} {
		if codec, ok := strings.CutPrefix(mime, prefix); ok {
			return form{enveloped: true, json: codec == "json", packing: packing}, codec == "json" || codec == "proto"
		}
	}
	return form{}, false
}

// inputOf returns the type of the message that a procedure takes; nil if there is no such procedure.
func inputOf(procedure string) protoreflect.MessageDescriptor {
	service, method, _ := strings.Cut(strings.TrimPrefix(procedure, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return nil
	}
	m := s.Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return nil
	}
	return m.Input()
}

func (m *messages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	input := inputOf(r.URL.Path)
	f, ok := formOf(r.Header.Get("Content-Type"))
	packing := r.Header.Get(f.packing)
	if !ok || input == nil || r.Method != http.MethodPost || packing != "" && packing != "identity" &&
		packing != "gzip" {
		m.next.ServeHTTP(w, r) // Connect refuses all of these without reading the body
		return
	}
	h := &hold{b: m.b, peer: m.o.Peer(r)}
	defer h.end()
	body, err := m.read(r, h, f, packing == "gzip", input)
	if err != nil {
		m.refuse(w, r, h.peer, err)
		return
	}
	passed := *r
	passed.Header = r.Header.Clone()
	if !f.enveloped {
		passed.Header.Del(f.packing)
	}
	passed.Header.Del("Content-Length")
	passed.ContentLength = int64(len(body))
	passed.Body = &whole{rest: body}
	m.next.ServeHTTP(w, &passed)
}

// read returns the call's body with its message unpacked. The call's hold then covers the body and the decoded form
// of the message.
func (m *messages) read(r *http.Request, h *hold, f form, packed bool,
	input protoreflect.MessageDescriptor) ([]byte, error) {
	most := m.o.Most(r.URL.Path)
	length := r.ContentLength
	if f.enveloped {
		length -= envelope
	}
	if length > most {
		return nil, fmt.Errorf("%w: %d bytes, this call takes %d", ErrTooLarge, length, most)
	}
	first := int64(2 * firstChunk)
	if !packed {
		first = max(first, 4*length)
	}
	if err := h.begin(r.Context(), first); err != nil {
		return nil, err
	}
	var message []byte
	var err error
	if f.enveloped {
		message, packed, err = readEnvelope(r.Body, h, most, packed)
	} else {
		message, err = readAll(r.Body, h, 0, most)
	}
	if err == nil && packed && len(message) > 0 {
		message, err = unpack(message, h, most)
	}
	if err != nil {
		return nil, err
	}
	// The service reads the body into a buffer of its own, which it doubles, and gives this body up before it decodes.
	n := int64(len(message))
	decoded := m.sizes.decodedJSON
	if !f.json {
		decoded = func(d protoreflect.MessageDescriptor, b []byte) int64 {
			cost, derr := m.sizes.decoded(d, b, h.b.peer)
			err = derr
			return cost
		}
	}
	cost := decoded(input, message)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := h.set(2*n + max(2*n, cost)); err != nil {
		return nil, fmt.Errorf("%d bytes take about %d in memory: %w", n, cost, err)
	}
	if !f.enveloped {
		return message, nil
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(n)), message...), nil
}

// envelope is the length of the prefix of an enveloped message: its flags and its length.
const envelope = 5

// Bits of an envelope's flags.
const flagPacked = 1

// readEnvelope reads the one enveloped message of a body. unpacks reports whether it is packed.
func readEnvelope(in io.Reader, h *hold, most int64, named bool) (message []byte, unpacks bool, err error) {
	var prefix [envelope]byte
	if _, err := io.ReadFull(in, prefix[:]); err != nil {
		return nil, false, malformed("the body has no message: %w", err)
	}
	n := int64(binary.BigEndian.Uint32(prefix[1:]))
	switch {
	case n > most:
		return nil, false, fmt.Errorf("%w: %d bytes, this call takes %d", ErrTooLarge, n, most)
	case prefix[0]&^flagPacked != 0:
		return nil, false, malformed("flags %#x of a message: want 0 or 1", prefix[0])
	case prefix[0] == flagPacked && !named:
		return nil, false, malformed("a packed message, and no header says how it is packed")
	}
	if message, err = readAll(io.LimitReader(in, n), h, 0, most); err != nil {
		return nil, false, err
	}
	if int64(len(message)) != n {
		return nil, false, malformed("a message of %d bytes ends after %d", n, len(message))
	}
	switch _, err := io.ReadFull(in, prefix[:1]); {
	case err == nil:
		return nil, false, malformed("more than one message, this call takes one")
	case !errors.Is(err, io.EOF):
		return nil, false, err
	}
	return message, prefix[0] == flagPacked, nil
}

func unpack(message []byte, h *hold, most int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil, malformed("unpack the message: %w", err)
	}
	packed := int64(len(message))
	out, err := readAll(&ratioReader{in: z, packed: packed}, h, 2*packed, most)
	if err != nil && !refused(err) {
		err = malformed("unpack the message: %w", err)
	}
	return out, err
}

func malformed(format string, a ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, a...))
}

// refused reports whether a message was refused for its size.
func refused(err error) bool {
	return errors.Is(err, ErrMemory) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrRatio)
}

func (m *messages) refuse(w http.ResponseWriter, r *http.Request, peer string, err error) {
	code := connect.CodeOf(err)
	switch {
	case refused(err):
		code = connect.CodeResourceExhausted
		if n, ok := m.lines.Allow(); ok {
			m.o.Logger.Warn("call refused", "procedure", r.URL.Path, "from", r.RemoteAddr, "peer", peer, "error", err,
				"suppressed", n)
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		code, err = connect.CodeDeadlineExceeded, fmt.Errorf("the body did not come in time: %w", err)
	case code == connect.CodeUnknown:
		code = connect.CodeInvalidArgument
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // the rest of the body is not read
	}
	var already *connect.Error
	if !errors.As(err, &already) {
		already = connect.NewError(code, err)
	}
	_ = m.errors.Write(w, r, already) // the caller is gone if it fails
}
