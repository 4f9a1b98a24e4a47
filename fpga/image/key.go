package image

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
)

// KeyID names a public key: the SHA-256 of its 32 bytes.
type KeyID [32]byte

// KeyOf names a public key.
func KeyOf(key ed25519.PublicKey) KeyID { return sha256.Sum256(key) }

func (k KeyID) String() string { return hex.EncodeToString(k[:]) }

// MarshalText writes the id in hexadecimal; the zero id, which no key has, is empty.
func (k KeyID) MarshalText() ([]byte, error) { return textOfBytes(k), nil }

// UnmarshalText reads 64 hexadecimal digits, or nothing.
func (k *KeyID) UnmarshalText(b []byte) error { return parseHexBytes((*[32]byte)(k), b, "key id") }

// MarshalText writes the id in hexadecimal; the zero id, which no image has, is empty.
func (id ID) MarshalText() ([]byte, error) { return textOfBytes(id), nil }

// UnmarshalText reads 64 hexadecimal digits, or nothing.
func (id *ID) UnmarshalText(b []byte) error { return parseHexBytes((*[32]byte)(id), b, "image id") }

func textOfBytes(v [32]byte) []byte {
	if v == ([32]byte{}) {
		return []byte{}
	}
	return hex.AppendEncode(nil, v[:])
}

// parseHexBytes reads 32 bytes from exactly 64 hexadecimal digits, or zeros from none.
func parseHexBytes(into *[32]byte, b []byte, what string) error {
	if len(b) == 0 {
		*into = [32]byte{}
		return nil
	}
	if len(b) != 64 {
		return fmt.Errorf("%s: %d characters, want 64 hexadecimal digits", what, len(b))
	}
	var v [32]byte
	if _, err := hex.Decode(v[:], b); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	*into = v
	return nil
}

// MaxKeyFile is the most bytes of a file of keys.
const MaxKeyFile = 64 << 10

// MaxKeys is the most public keys that a file, or a drive, holds.
const MaxKeys = 64

// ParsePrivateKey reads an Ed25519 key in PEM (PKCS #8), as "openssl genpkey -algorithm ed25519" writes it. There must
// be exactly one.
func ParsePrivateKey(b []byte) (ed25519.PrivateKey, error) {
	if len(b) > MaxKeyFile {
		return nil, fmt.Errorf("private key: %d bytes, at most %d", len(b), MaxKeyFile)
	}
	block, rest := pem.Decode(b)
	switch {
	case block == nil:
		return nil, errors.New("private key: no PEM block: make one with openssl genpkey -algorithm ed25519")
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("private key: it is encrypted: decrypt it with openssl pkey")
	case block.Type != "PRIVATE KEY":
		return nil, fmt.Errorf("private key: the PEM block is a %q, want PRIVATE KEY (PKCS #8)", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("private key: something follows the PEM block")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	ed, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("private key: it is a %T, want Ed25519", key)
	}
	return ed, nil
}

// ParsePublicKeys reads the Ed25519 keys of a PEM file (SPKI, as "openssl pkey -pubout" writes it): one or more, each
// once.
func ParsePublicKeys(b []byte) ([]ed25519.PublicKey, error) {
	if len(b) > MaxKeyFile {
		return nil, fmt.Errorf("public keys: %d bytes, at most %d", len(b), MaxKeyFile)
	}
	var keys []ed25519.PublicKey
	have := make(map[KeyID]bool)
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			break
		}
		b = rest
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("public keys: a PEM block is a %q, want PUBLIC KEY: openssl pkey -pubout makes it of a "+
				"private key", block.Type)
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("public keys: %w", err)
		}
		ed, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("public keys: one is a %T, want Ed25519", key)
		}
		if id := KeyOf(ed); !have[id] {
			have[id] = true
			keys = append(keys, ed)
		}
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("public keys: no PEM block")
	case len(keys) > MaxKeys:
		return nil, fmt.Errorf("public keys: %d, at most %d", len(keys), MaxKeys)
	case len(bytes.TrimSpace(b)) > 0:
		return nil, errors.New("public keys: something follows the last PEM block")
	}
	return keys, nil
}
