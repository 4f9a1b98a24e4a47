package auth

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
)

// ErrKey is wrapped by every error of ParseKey and GenerateKey.
var ErrKey = errors.New("not a DH-HMAC-CHAP key")

const (
	keyPrefix = "DHHC-1:"
	// maxKeyText is the length of the longest key: prefix, hh, two colons, and base64 of 64 bytes and their CRC.
	maxKeyText = len(keyPrefix) + 3 + 92 + 1
	// transformSuffix is bound into a transformed key, after the NQN of its owner.
	transformSuffix = "NVMe-over-Fabrics"
)

// Key is the secret of a host or of a subsystem: 32, 48 or 64 bytes, and the hash by which its owner's NQN transforms
// it. The zero Key is not a key. A Key is immutable; it prints without its secret.
type Key struct {
	hash   Hash
	secret string
}

// ParseKey reads a key as nvme-cli's gen-dhchap-key writes it: "DHHC-1:hh:base64(secret || CRC-32):", hh the hash that
// transforms it (00 none, 01 SHA-256, 02 SHA-384, 03 SHA-512), the CRC that of RFC 1952, little endian. The form is
// taken strictly, as nvme-cli's check-dhchap-key does: no white space, and a secret of the hash's length (any of the
// three where hh is 00). The error wraps ErrKey, and holds no part of the text.
func ParseKey(text string) (Key, error) {
	fail := func(format string, args ...any) (Key, error) {
		return Key{}, fmt.Errorf("%w: %s; `nvme gen-dhchap-key` makes one", ErrKey, fmt.Sprintf(format, args...))
	}
	if len(text) > maxKeyText {
		return fail("%d characters are too many", len(text))
	}
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return fail("it does not start with %q", keyPrefix)
	}
	rest, ok = strings.CutSuffix(rest, ":")
	if !ok {
		return fail("it does not end with a colon")
	}
	hh, encoded, ok := strings.Cut(rest, ":")
	if !ok || len(hh) != 2 || hh[0] != '0' || hh[1] < '0' || hh[1] > '3' {
		return fail("its second field is not 00, 01, 02 or 03")
	}
	hash := Hash(hh[1] - '0')
	// The decoder skips line ends, which the format does not have.
	if strings.ContainsAny(encoded, "\r\n") {
		return fail("its third field is not base64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return fail("its third field is not base64")
	}
	secret := raw[:max(len(raw)-crc32.Size, 0)]
	key, err := newKey(hash, secret)
	if err != nil {
		return Key{}, fmt.Errorf("%w; `nvme gen-dhchap-key` makes one", err)
	}
	if crc32.ChecksumIEEE(secret) != binary.LittleEndian.Uint32(raw[len(secret):]) {
		return fail("its checksum does not match, so it was mistyped or cut")
	}
	return key, nil
}

// newKey makes a key of a secret, if the secret has a length that the hash takes. An error wraps ErrKey.
func newKey(hash Hash, secret []byte) (Key, error) {
	n := len(secret)
	switch {
	case hash > SHA512:
		return Key{}, fmt.Errorf("%w: %v cannot transform it", ErrKey, hash)
	case n != 32 && n != 48 && n != 64:
		return Key{}, fmt.Errorf("%w: its secret is of %d bytes, not 32, 48 or 64", ErrKey, n)
	case hash != NoHash && n != hash.Len():
		return Key{}, fmt.Errorf("%w: its secret is of %d bytes, but %v takes %d", ErrKey, n, hash, hash.Len())
	}
	return Key{hash: hash, secret: string(secret)}, nil
}

// GenerateKey draws a new key from crypto/rand, of the length that belongs to the hash (32 bytes for NoHash).
func GenerateKey(hash Hash) (Key, error) {
	n := hash.Len()
	if hash == NoHash {
		n = 32
	}
	secret := make([]byte, n)
	if _, err := rand.Read(secret); err != nil {
		return Key{}, fmt.Errorf("draw a key: %w", err)
	}
	return newKey(hash, secret)
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.secret == "" }

// Text is the key in the form that ParseKey reads: the secret in clear. It is "" for the zero Key.
func (k Key) Text() string {
	if k.IsZero() {
		return ""
	}
	raw := append([]byte(k.secret), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(raw[len(k.secret):], crc32.ChecksumIEEE([]byte(k.secret)))
	return fmt.Sprintf("%s%02d:%s:", keyPrefix, k.hash, base64.StdEncoding.EncodeToString(raw))
}

// String describes the kind of the key, and not its secret.
func (k Key) String() string {
	if k.IsZero() {
		return "no key"
	}
	return fmt.Sprintf("DHHC-1:%02d:(%d bytes)", k.hash, len(k.secret))
}

// GoString keeps the secret out of %#v.
func (k Key) GoString() string { return "auth.Key{" + k.String() + "}" }

// LogValue keeps the secret out of logs.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// transformed is the key that responses are computed with: the secret itself, or its HMAC over the owner's NQN.
func (k Key) transformed(nqn string) []byte {
	if k.hash == NoHash {
		return []byte(k.secret)
	}
	return k.hash.mac([]byte(k.secret), []byte(nqn), []byte(transformSuffix))
}
