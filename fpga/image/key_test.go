package image

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The output of "openssl genpkey -algorithm ed25519" and "openssl pkey -pubout" of OpenSSL 3.0.
const (
	opensslKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`
	opensslPub = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
`
)

func pemOf(t testing.TB, kind string, key any) string {
	t.Helper()
	var der []byte
	var err error
	if kind == "PRIVATE KEY" {
		der, err = x509.MarshalPKCS8PrivateKey(key)
	} else {
		der, err = x509.MarshalPKIXPublicKey(key)
	}
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestKeysOfOpenSSL(t *testing.T) {
	key, err := ParsePrivateKey([]byte(opensslKey))
	require.NoError(t, err)
	keys, err := ParsePublicKeys([]byte(opensslPub))
	require.NoError(t, err)
	require.Len(t, keys, 1)
	assert.Equal(t, key.Public(), keys[0], "RFC 8032, 7.1, test 1")
	assert.Equal(t, "21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9", KeyOf(keys[0]).String())
}

func TestKeysThatAreRefused(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":      {"", "no PEM block"},
		"no PEM":       {"0123", "no PEM block"},
		"a public key": {opensslPub, "want PRIVATE KEY"},
		"encrypted":    {strings.ReplaceAll(opensslKey, "PRIVATE", "ENCRYPTED PRIVATE"), "decrypt it"},
		"another kind": {pemOf(t, "PRIVATE KEY", other), "want Ed25519"},
		"two":          {opensslKey + opensslKey, "follows"},
		"damaged":      {strings.Replace(opensslKey, "MC4C", "MC4D", 1), "private key"},
		"too long":     {strings.Repeat(" ", MaxKeyFile+1), "at most"},
	} {
		_, err := ParsePrivateKey([]byte(tt.text))
		require.ErrorContains(t, err, tt.says, name)
	}
	var many strings.Builder
	for i := range MaxKeys + 1 {
		many.WriteString(pemOf(t, "PUBLIC KEY", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i)}, 32)).Public()))
	}
	for name, tt := range map[string]struct{ text, says string }{
		"nothing":       {"", "no PEM block"},
		"a private key": {opensslKey, "want PUBLIC KEY"},
		"another kind":  {pemOf(t, "PUBLIC KEY", other.Public()), "want Ed25519"},
		"rest":          {opensslPub + "more", "follows"},
		"damaged":       {strings.Replace(opensslPub, "MCow", "MCox", 1), "public keys"},
		"too many":      {many.String(), "at most 64"},
		"too long":      {strings.Repeat(" ", MaxKeyFile+1), "at most"},
	} {
		_, err := ParsePublicKeys([]byte(tt.text))
		require.ErrorContains(t, err, tt.says, name)
	}
	keys, err := ParsePublicKeys([]byte(opensslPub + "\n" + opensslPub))
	require.NoError(t, err)
	assert.Len(t, keys, 1, "each once")
}

func TestIDsInText(t *testing.T) {
	id := ID{1, 2, 0xff}
	b, err := json.Marshal(map[string]any{"image": id, "key": KeyID(id)})
	require.NoError(t, err)
	var back struct {
		Image ID    `json:"image"`
		Key   KeyID `json:"key"`
	}
	require.NoError(t, json.Unmarshal(b, &back))
	assert.Equal(t, id, back.Image)
	assert.Equal(t, KeyID(id), back.Key)
	assert.Equal(t, "0102ff0000000000", id.Short())
	for _, bad := range []string{"0102", strings.Repeat("g", 64), strings.Repeat("0", 65)} {
		require.Error(t, back.Image.UnmarshalText([]byte(bad)), bad)
		require.Error(t, back.Key.UnmarshalText([]byte(bad)), bad)
	}
	assert.Equal(t, id, back.Image, "what is refused changes nothing")
	b, err = json.Marshal(ID{})
	require.NoError(t, err)
	assert.Equal(t, `""`, string(b), "no image")
	require.NoError(t, json.Unmarshal(b, &back.Image))
	assert.Zero(t, back.Image)
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte(opensslKey))
	f.Add([]byte(opensslPub))
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, err := ParsePrivateKey(b); err == nil {
			require.Len(t, key, ed25519.PrivateKeySize)
		}
		if keys, err := ParsePublicKeys(b); err == nil {
			require.NotEmpty(t, keys)
			for _, k := range keys {
				require.Len(t, k, ed25519.PublicKeySize)
			}
		}
	})
}
