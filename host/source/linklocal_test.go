package source

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// resolveTo returns a resolver that answers every question for an IPv4 address with one address.
func resolveTo(t *testing.T, address [4]byte) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // no net.PacketConn: messages begin with their length
		go func() {
			defer server.Close()
			for {
				var size uint16
				if binary.Read(server, binary.BigEndian, &size) != nil {
					return
				}
				question := make([]byte, size)
				if _, err := io.ReadFull(server, question); err != nil {
					return
				}
				const header = 12
				end := header
				for question[end] != 0 {
					end += int(question[end]) + 1
				}
				end += 5 // the end of the name, type and class
				answer := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[header:end]...)
				if question[end-3] == 1 { // an A record is asked for
					answer[7] = 1
					answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
					answer = append(answer, address[:]...)
				}
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// TestLinkLocalIsNotCalled: a name that resolves to a link-local address, such an address itself, and a redirect to one
// are refused before a connection is made, and not tried again.
func TestLinkLocalIsNotCalled(t *testing.T) {
	redirecting := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://[::ffff:169.254.169.254]/latest/meta-data", http.StatusFound)
	})
	for name, c := range map[string]struct {
		uri       string
		addresses [4]byte
	}{
		"a name":      {"http://metadata.example/x", [4]byte{169, 254, 169, 254}},
		"a metadata":  {"http://metadata.example/x", [4]byte{100, 100, 100, 200}},
		"an address":  {"http://169.254.0.1:8080/x", [4]byte{}},
		"a zone":      {"http://[fe80::1%25lo]/x", [4]byte{}},
		"a redirect":  {redirecting, [4]byte{}},
		"with prefix": {redirecting, [4]byte{}},
	} {
		transport := newTransport(nil, resolveTo(t, c.addresses))
		t.Cleanup(transport.CloseIdleConnections)
		stores := &Stores{Web: NewWeb(transport)}
		if name == "with prefix" {
			stores = stores.Within(Prefixes{ParseLocation(redirecting).Folder(), "http://[::ffff:169.254.169.254]/"})
		}
		_, err := stores.Open(t.Context(), ParseLocation(c.uri), Identity{})
		var refused *UnsupportedError
		require.ErrorAs(t, err, &refused, "%s: %v", name, err)
		assert.Contains(t, err.Error(), "link-local address", name)
	}
	// The resolver's other answers are taken.
	transport := newTransport(nil, resolveTo(t, [4]byte{127, 0, 0, 1}))
	t.Cleanup(transport.CloseIdleConnections)
	_, port, err := net.SplitHostPort(serveAddress(t))
	require.NoError(t, err)
	_, err = NewWeb(transport).Open(t.Context(), ParseLocation("http://data.example:"+port+"/x"), Identity{})
	require.NoError(t, err)
}

// serveAddress serves the honest object, and returns HOST:PORT.
func serveAddress(t *testing.T) string {
	t.Helper()
	u, err := http.NewRequest(http.MethodGet, serve(t, honest), http.NoBody)
	require.NoError(t, err)
	return u.URL.Host
}
