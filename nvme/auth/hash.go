package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
)

// Hash is a hash function by its identifier in DH-HMAC-CHAP messages and in keys.
type Hash uint8

// Hash functions.
const (
	NoHash Hash = 0 // in a key: the secret is used as it is; not valid in a message
	SHA256 Hash = 1
	SHA384 Hash = 2
	SHA512 Hash = 3
)

// maxHashLen is the length in bytes of the longest response and challenge.
const maxHashLen = 64

// Len is the length in bytes of the hash's values, and so of challenges and responses: 32, 48 or 64; 0 if it is
// unknown.
func (h Hash) Len() int {
	switch h {
	case SHA256:
		return sha256.Size
	case SHA384:
		return sha512.Size384
	case SHA512:
		return sha512.Size
	}
	return 0
}

func (h Hash) String() string {
	switch h {
	case NoHash:
		return "none"
	case SHA256:
		return "SHA-256"
	case SHA384:
		return "SHA-384"
	case SHA512:
		return "SHA-512"
	}
	return fmt.Sprintf("hash %02Xh", uint8(h))
}

// new returns the hash's state. The hash must be known (Len is not 0).
func (h Hash) new() hash.Hash {
	switch h {
	case SHA384:
		return sha512.New384()
	case SHA512:
		return sha512.New()
	default:
		return sha256.New()
	}
}

// sum is the hash of b.
func (h Hash) sum(b []byte) []byte {
	s := h.new()
	s.Write(b)
	return s.Sum(nil)
}

// mac is the HMAC of the concatenation of parts.
func (h Hash) mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(h.new, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}
