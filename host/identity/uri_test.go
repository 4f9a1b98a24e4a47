package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notCanonical are URIs that some reader might take for spiffe://millrace/operator/ann.
var notCanonical = []string{
	"SPIFFE://millrace/operator/ann", "Spiffe://millrace/operator/ann", "spiffe://MILLRACE/operator/ann",
	"spiffe://Millrace/operator/ann",
	"spiffe://millrace/operator/%61nn", "spiffe://millrace/%6fperator/ann", "spiffe://mill%72ace/operator/ann",
	"spiffe://millrace/operator%2fann",
	"spiffe://millrace//operator/ann", "spiffe://millrace/operator//ann", "spiffe://millrace/operator/ann/",
	"spiffe://millrace/operator/ann//",
	"spiffe://millrace:443/operator/ann", "spiffe://millrace:/operator/ann", "spiffe://x@millrace/operator/ann",
	"spiffe://x:y@millrace/operator/ann",
	"spiffe://@millrace/operator/ann", "spiffe://millrace/operator/ann?", "spiffe://millrace/operator/ann?a=b",
	"spiffe://millrace/operator/ann#",
	"spiffe://millrace/operator/ann#f", "spiffe:/millrace/operator/ann", "spiffe:millrace/operator/ann",
	"spiffe:///operator/ann",
	"spiffe://millrace/Operator/ann", "spiffe://millrace/operator/Ann", "spiffe://millrace/./operator/ann",
	"spiffe://millrace/node/../operator/ann",
	"spiffe://millrace/operator/ann\x00", "spiffe://millrace/operator/ann\n", "spiffe://millrace/operator/ann ",
	"spiffe://millrace/operator",
	"spiffe://millrace/operator/", "spiffe://millrace/", "spiffe://millrace", "spiffe://millrace/operator/ann/more",
}

func TestParseURI(t *testing.T) {
	for _, text := range notCanonical {
		_, _, err := parseURI(text)
		assert.Error(t, err, "%q", text)
	}
	for _, text := range []string{"https://millrace/operator/ann", "spiffe://millrace.example/operator/ann",
		"spiffe://millracer/operator/ann", "spiffe://other", "urn:x", "", "spiffe"} {
		_, ours, err := parseURI(text)
		assert.NoError(t, err, "%q", text)
		assert.False(t, ours, "%q", text)
	}
	for _, want := range []Identity{{Operator, "ann"}, {Node, "n0"}, {Launcher, "ads.host-3"}, {Control, "c"}} {
		id, ours, err := parseURI(want.URI().String())
		require.NoError(t, err)
		assert.True(t, ours)
		assert.Equal(t, want, id)
	}
}

// certificate makes a certificate that carries URIs as they are written.
func certificate(t testing.TB, uris ...string) *x509.Certificate {
	t.Helper()
	var names []asn1.RawValue
	for _, u := range uris {
		names = append(names,
			asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: uniformResourceIdentifier, Bytes: []byte(u)})
	}
	value, err := asn1.Marshal(names)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtraExtensions: []pkix.Extension{{Id: subjectAlternativeName, Value: value}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil // the standard library refuses it before parseURI
	}
	return cert
}

// TestOfReadsWhatIsWritten checks that Of reads the URI as it is written: url.Parse makes the scheme lower case, so
// that the parsed URI is not enough.
func TestOfReadsWhatIsWritten(t *testing.T) {
	const good = "spiffe://millrace/operator/ann"
	id, err := Of(certificate(t, "https://example.net/x", good, "spiffe://other/node/n0"))
	require.NoError(t, err)
	assert.Equal(t, Identity{Operator, "ann"}, id)
	read := 0
	for _, text := range notCanonical {
		for _, uris := range [][]string{{text}, {good, text}, {text, good}} {
			if cert := certificate(t, uris...); cert != nil {
				read++
				_, err := Of(cert)
				require.ErrorIs(t, err, ErrPeer, "%q", uris)
			}
		}
	}
	assert.Greater(t, read, len(notCanonical), "most of them reach us")
	_, err = Of(certificate(t, good, good))
	require.ErrorIs(t, err, ErrPeer, "twice is not once")
	_, err = Of(certificate(t))
	require.ErrorIs(t, err, ErrPeer)
}

// FuzzURI checks that an accepted text is the text that Identity.URI writes, byte for byte.
func FuzzURI(f *testing.F) {
	for _, text := range notCanonical {
		f.Add(text)
	}
	f.Add("spiffe://millrace/launcher/ads.host-3")
	f.Add("spiffe://other/node/n0")
	f.Fuzz(func(t *testing.T, text string) {
		id, ours, err := parseURI(text)
		if err != nil || !ours {
			if id != (Identity{}) {
				t.Fatalf("%q: an identity beside an error", text)
			}
			return
		}
		if got := id.URI().String(); got != text {
			t.Fatalf("%q was taken for %q", text, got)
		}
		if err := id.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
