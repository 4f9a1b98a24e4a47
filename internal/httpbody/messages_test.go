package httpbody

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// take and watch are the calls of a service that takes a description of a file; watch answers with a stream.
const (
	take  = "/httpbody.test.Files/Take"
	watch = "/httpbody.test.Files/Watch"
)

var register = sync.OnceValue(func() error {
	method := func(name string, streams bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: proto.String(name), InputType: proto.String(".google.protobuf.FileDescriptorProto"),
			OutputType: proto.String(".google.protobuf.Empty"), ServerStreaming: proto.Bool(streams),
		}
	}
	f, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("httpbody_test.proto"), Package: proto.String("httpbody.test"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"google/protobuf/descriptor.proto", "google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name:   proto.String("Files"),
			Method: []*descriptorpb.MethodDescriptorProto{method("Take", false), method("Watch", true)},
		}},
	}, protoregistry.GlobalFiles)
	return errors.Join(err, protoregistry.GlobalFiles.RegisterFile(f))
})

// service is a server of the calls behind a budget.
type service struct {
	*httptest.Server
	budget *Budget
	during func(f *descriptorpb.FileDescriptorProto) // called while a call runs
	log    bytes.Buffer
	logMu  sync.Mutex
}

func (s *service) Write(p []byte) (int, error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.log.Write(p)
}

func serve(t *testing.T, memory, most int64) *service {
	t.Helper()
	require.NoError(t, register())
	s := &service{budget: NewBudget(memory)}
	s.budget.patience = 1
	mux := http.NewServeMux()
	run := func(f *descriptorpb.FileDescriptorProto) {
		if s.during != nil {
			s.during(f)
		}
	}
	mux.Handle(take,
		connect.NewUnaryHandler(take, func(_ context.Context,
			r *connect.Request[descriptorpb.FileDescriptorProto]) (*connect.Response[emptypb.Empty], error) {
			run(r.Msg)
			return connect.NewResponse(&emptypb.Empty{}), nil
		}))
	mux.Handle(watch,
		connect.NewServerStreamHandler(watch, func(_ context.Context,
			r *connect.Request[descriptorpb.FileDescriptorProto], out *connect.ServerStream[emptypb.Empty]) error {
			run(r.Msg)
			return out.Send(&emptypb.Empty{})
		}))
	s.Server = httptest.NewUnstartedServer(s.budget.Messages(MessageOptions{
		Most: func(string) int64 { return most }, Logger: slog.New(slog.NewTextHandler(s, nil)),
	}, mux))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// describes is a description of a file with a given number of messages, of about a kilobyte each.
func describes(messages int) *descriptorpb.FileDescriptorProto {
	f := &descriptorpb.FileDescriptorProto{}
	for i := range messages {
		f.Dependency = append(f.Dependency, strings.Repeat(string(rune('a'+i%26)), 1000))
	}
	return f
}

// TestEveryProtocolPasses: a message comes through as it was sent, however it is written and packed, and its memory is
// given back.
func TestEveryProtocolPasses(t *testing.T) {
	s := serve(t, 64<<20, 4<<20)
	want := describes(300)
	calls := 0
	s.during = func(f *descriptorpb.FileDescriptorProto) {
		calls++
		assert.True(t, proto.Equal(want, f))
		used, _ := s.budget.Used()
		assert.Greater(t, used, int64(300_000))
	}
	for name, protocol := range map[string][]connect.ClientOption{
		"Connect": nil, "gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	} {
		for codec, more := range map[string][]connect.ClientOption{"proto": nil, "JSON": {connect.WithProtoJSON()}} {
			for packing, pack := range map[string][]connect.ClientOption{"gzip": {connect.WithSendGzip()},
				"as it is": nil} {
				t.Run(name+" "+codec+" "+packing, func(t *testing.T) {
					options := append(append(append([]connect.ClientOption{}, protocol...), more...), pack...)
					before := calls
					_, err := connect.NewClient[descriptorpb.FileDescriptorProto, emptypb.Empty](s.Client(), s.URL+take,
						options...).CallUnary(t.Context(), connect.NewRequest(want))
					require.NoError(t, err)
					stream, err := connect.NewClient[descriptorpb.FileDescriptorProto, emptypb.Empty](s.Client(), s.URL+
						watch, options...).CallServerStream(t.Context(), connect.NewRequest(want))
					require.NoError(t, err)
					assert.True(t, stream.Receive())
					assert.False(t, stream.Receive())
					require.NoError(t, stream.Err())
					require.NoError(t, stream.Close())
					assert.Equal(t, before+2, calls)
				})
			}
		}
	}
	require.Eventually(t, func() bool { now, _ := s.budget.Used(); return now == 0 }, waitLong, waitShort)
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return out.Bytes()
}

// post sends a body and returns the status and the answer's body.
func (s *service) post(t *testing.T, path string, header map[string]string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, body)
	require.NoError(t, err)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := s.Client().Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b) + resp.Trailer.Get("Grpc-Message") + resp.Header.Get("Grpc-Message")
}

// TestBombsAreRefused: before they are decoded, with resource_exhausted, and the server has taken no more than a
// fraction of what they stand for.
func TestBombsAreRefused(t *testing.T) {
	const most = 64 << 20
	messages := repeated(4, nil, 30<<20/2) // of two bytes each: 30 MB that would become 3 GB
	enveloped := func(flags byte, b []byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(b))), b...)
	}
	zip := packed(t, messages)
	require.Less(t, len(zip), 62<<10)
	tight := packed(t, repeated(4, nil, 1<<20/2+1))
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		body   []byte
		says   string
	}{
		"gzip, Connect": {
			take, map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"}, zip,
			"packed too tightly",
		},
		"gzip, stream": {
			watch, map[string]string{"Content-Type": "application/connect+proto", "Connect-Content-Encoding": "gzip"},
			enveloped(1, zip), "packed too tightly",
		},
		"gzip, gRPC": {
			take, map[string]string{"Content-Type": "application/grpc", "Grpc-Encoding": "gzip"}, enveloped(1, zip),
			"packed too tightly",
		},
		"gzip, gRPC-Web": {
			take, map[string]string{"Content-Type": "application/grpc-web+proto", "Grpc-Encoding": "gzip"},
			enveloped(1, zip), "packed too tightly",
		},
		"not packed": {take, map[string]string{"Content-Type": "application/proto"}, messages, "in memory"},
		"JSON": {
			take, map[string]string{"Content-Type": "application/json"},
			[]byte(`{"messageType":[` + strings.Repeat("{},", 5<<20) + `{}]}`), "in memory",
		},
		"too large": {
			take, map[string]string{"Content-Type": "application/proto"}, make([]byte, most+1), "message too large",
		},
		"too large, gRPC": {
			take, map[string]string{"Content-Type": "application/grpc"}, []byte{0, 0xff, 0xff, 0xff, 0xff},
			"message too large",
		},
		"just over 1 MiB": {
			take, map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"}, tight,
			"packed too tightly",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 256<<20, most)
			s.during = func(*descriptorpb.FileDescriptorProto) { t.Error("it was decoded") }
			status, text := s.post(t, c.path, c.header, bytes.NewReader(c.body))
			if !strings.Contains(c.header["Content-Type"], "grpc") &&
				!strings.Contains(c.header["Content-Type"], "connect+") {
				assert.Equal(t, http.StatusTooManyRequests, status)
				assert.Contains(t, text, "resource_exhausted")
			}
			assert.Contains(t, text, c.says)
			_, took := s.budget.Used()
			assert.LessOrEqual(t, took, int64(128<<20))
			s.logMu.Lock()
			defer s.logMu.Unlock()
			assert.Contains(t, s.log.String(), "call refused")
			assert.Contains(t, s.log.String(), "from=127.0.0.1")
		})
	}
}

// TestManyBombsAtOnce: together they take no more than the budget, and an honest call of another size passes beside
// them.
func TestManyBombsAtOnce(t *testing.T) {
	const memory = 32 << 20
	s := serve(t, memory, 16<<20)
	body := make([]byte, 3<<20) // random enough to pack badly
	for i := range body {
		body[i] = byte(i * i >> 7)
	}
	zip := packed(t, proto1(body))
	results := make(chan int, 32)
	for range 32 {
		go func() {
			status, _ := s.post(t, take, map[string]string{"Content-Type": "application/proto",
				"Content-Encoding": "gzip"}, bytes.NewReader(zip))
			results <- status
		}()
	}
	for range 32 {
		assert.Contains(t, []int{http.StatusOK, http.StatusTooManyRequests}, <-results)
	}
	_, took := s.budget.Used()
	assert.LessOrEqual(t, took, int64(memory))
	require.Eventually(t, func() bool { now, _ := s.budget.Used(); return now == 0 }, waitLong, waitShort)
	status, text := s.post(t, take, map[string]string{"Content-Type": "application/proto"},
		bytes.NewReader(proto1(body[:1<<20])))
	assert.Equal(t, http.StatusOK, status, text)
}

// proto1 is a message with one string.
func proto1(text []byte) []byte {
	b := make([]byte, len(text))
	for i, c := range text {
		b[i] = 'a' + c%26
	}
	return repeated(1, b, 1)
}

// TestPeersHaveTheirOwn checks that a peer that holds its half leaves the other half to other peers.
func TestPeersHaveTheirOwn(t *testing.T) {
	require.NoError(t, register())
	b := NewBudget(8 << 20)
	b.patience = 1
	hold, entered := make(chan struct{}), make(chan struct{})
	h := b.Messages(MessageOptions{
		Most: func(string) int64 {
			return 4 << 20
		}, Peer: func(r *http.Request) string { return r.Header.Get("X-Peer") },
	}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			entered <- struct{}{}
			<-hold
		}
	}))
	call := func(peer, wait string) int {
		r := httptest.NewRequest(http.MethodPost, take, bytes.NewReader(proto1(make([]byte, 900<<10))))
		r.Header.Set("Content-Type", "application/proto")
		r.Header.Set("X-Peer", peer)
		r.Header.Set("X-Wait", wait)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	done := make(chan int)
	go func() { done <- call("a", "yes") }()
	<-entered
	assert.Equal(t, http.StatusTooManyRequests, call("a", ""))
	assert.Equal(t, http.StatusOK, call("b", ""))
	close(hold)
	assert.Equal(t, http.StatusOK, <-done)
	assert.Equal(t, http.StatusOK, call("a", ""))
}

// TestMalformedBodies get an answer that says what is wrong, and no panic.
func TestMalformedBodies(t *testing.T) {
	s := serve(t, 16<<20, 1<<20)
	good, err := proto.Marshal(describes(2))
	require.NoError(t, err)
	text, err := protojson.Marshal(describes(2))
	require.NoError(t, err)
	zip := packed(t, good)
	unary, grpc := map[string]string{"Content-Type": "application/proto"},
		map[string]string{"Content-Type": "application/grpc"}
	gz := map[string]string{"Content-Type": "application/proto", "Content-Encoding": "gzip"}
	for name, c := range map[string]struct {
		header map[string]string
		body   []byte
		says   string
	}{
		"half a gzip": {gz, zip[:len(zip)/2], "unpack the message"},
		"no gzip":     {gz, good, "unpack the message"},
		"wrong checksum": {
			gz, append(append([]byte{}, zip[:len(zip)-8]...), 1, 2, 3, 4, 5, 6, 7, 8), "unpack the message",
		},
		"no envelope":        {grpc, nil, "no message"},
		"half an envelope":   {grpc, []byte{0, 0}, "no message"},
		"a short message":    {grpc, append([]byte{0, 0, 0, 0, 9}, 1, 2), "ends after 2"},
		"two messages":       {grpc, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "more than one"},
		"flags":              {grpc, []byte{2, 0, 0, 0, 0}, "flags"},
		"packed and no name": {grpc, []byte{1, 0, 0, 0, 0}, "no header says how"},
		"unknown packing": {
			map[string]string{"Content-Type": "application/proto", "Content-Encoding": "br"}, good,
			"unknown compression",
		},
		"unknown type":       {map[string]string{"Content-Type": "text/plain"}, good, ""},
		"JSON that is proto": {map[string]string{"Content-Type": "application/json"}, good, "invalid_argument"},
		"proto that is JSON": {unary, text, "invalid_argument"},
		"no message, unary":  {unary, nil, "{}"},
		"identity": {
			map[string]string{"Content-Type": "application/proto", "Content-Encoding": "identity"}, good, "",
		},
		"empty body of gzip":  {gz, nil, ""},
		"JSON with a charset": {map[string]string{"Content-Type": "application/json; charset=utf-8"}, text, "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := s.post(t, take, c.header, bytes.NewReader(c.body))
			if c.says != "{}" || c.header["Content-Type"] != "application/proto" {
				assert.Contains(t, got, c.says)
			}
		})
	}
	require.Eventually(t, func() bool { now, _ := s.budget.Used(); return now == 0 }, waitLong, waitShort)
	status, _ := s.post(t, "/httpbody.test.Files/Nothing", unary, bytes.NewReader(good))
	assert.Equal(t, http.StatusNotFound, status)
}

// FuzzBodies checks that the handler answers every body, gives back the memory that it took, and takes no more than
// the budget.
func FuzzBodies(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0}, uint8(3), uint8(1))
	f.Add([]byte{1, 0, 0, 0, 1, 9}, uint8(4), uint8(1))
	f.Add(repeated(4, nil, 50), uint8(0), uint8(0))
	f.Add([]byte{0x1f, 0x8b, 8}, uint8(0), uint8(1))
	types := []string{
		"application/proto", "application/json", "application/connect+proto", "application/grpc",
		"application/grpc-web+json", "x/y", "",
	}
	packings := []string{"", "gzip", "identity", "br"}
	require.NoError(f, register())
	b := NewBudget(1 << 20)
	b.patience = 1
	h := b.Messages(MessageOptions{Most: func(string) int64 {
		return 100 << 10
	}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	f.Fuzz(func(t *testing.T, body []byte, contentType, packing uint8) {
		r := httptest.NewRequest(http.MethodPost, take, bytes.NewReader(body))
		r.Header.Set("Content-Type", types[int(contentType)%len(types)])
		for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
			r.Header.Set(name, packings[int(packing)%len(packings)])
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if now, most := b.Used(); now != 0 || most > 1<<20 {
			t.Fatalf("%d bytes are taken, %d were", now, most)
		}
	})
}
