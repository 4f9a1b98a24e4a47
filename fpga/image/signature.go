package image

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
)

// Signature is the content of the SIGNATURE section: Ed25519 over every byte of the file before the section.
type Signature struct {
	Key [32]byte // SHA-256 of the public key
	Sig [ed25519.SignatureSize]byte
}

// signatureSize is the section's fixed size: algorithm (1, Ed25519), 3 zeros, key id, signature.
const signatureSize = 4 + 32 + ed25519.SignatureSize

func parseSignature(b []byte) (*Signature, error) {
	s := &section{kind: KindSignature}
	if len(b) != signatureSize {
		return nil, refuseSection(s, ErrLayout, fmt.Sprintf("%d bytes, want %d", len(b), signatureSize))
	}
	if b[0] != 1 || !isAllZeros(b[1:4]) {
		return nil, refuseSection(s, ErrUnknown, fmt.Sprintf("algorithm % x", b[:4]))
	}
	sig := new(Signature)
	copy(sig.Key[:], b[4:])
	copy(sig.Sig[:], b[36:])
	return sig, nil
}

// Sign returns the image with a signature of key, in place of one it may carry. Its id stays the same.
func (m *Image) Sign(key ed25519.PrivateKey) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("image: sign: private key has %d bytes, want %d", len(key), ed25519.PrivateKeySize)
	}
	h, _, err := parseHeader(m.bytes)
	if err != nil {
		return nil, err
	}
	var sections []section
	for i, s := range m.Sections {
		if s.Kind == KindSignature {
			continue
		}
		e, _, err := parseEntry(m.bytes, i)
		if err != nil {
			return nil, err
		}
		e.data = m.bytes[s.Offset : s.Offset+s.Size]
		sections = append(sections, *e)
	}
	if n := len(sections); n > 0 && sections[n-1].kind.orderInFile() > KindSignature.orderInFile() {
		return nil, &Error{Section: "SIGNATURE", Detail: "an unknown section would follow it", Err: ErrUnknown}
	}
	body := make([]byte, signatureSize)
	body[0] = 1
	id := sha256.Sum256(key.Public().(ed25519.PublicKey))
	copy(body[4:], id[:])
	b := encodeImage(h, append(sections, newSection(KindSignature, body)))
	start := len(b) - signatureSize
	copy(b[start+36:], ed25519.Sign(key, b[:start]))
	return b, nil
}

// Verify returns nil when the image is signed by one of the keys, else an error that wraps ErrUnsigned.
func (m *Image) Verify(trusted []ed25519.PublicKey) error {
	if m.Signature == nil {
		return &Error{Section: "SIGNATURE", Detail: "missing", Err: ErrUnsigned}
	}
	for _, k := range trusted {
		if len(k) != ed25519.PublicKeySize || sha256.Sum256(k) != m.Signature.Key {
			continue
		}
		if ed25519.Verify(k, m.bytes[:m.signed], m.Signature.Sig[:]) {
			return nil
		}
		return &Error{Section: "SIGNATURE", Detail: "does not match the bytes", Err: ErrCorrupt}
	}
	return &Error{Section: "SIGNATURE", Detail: fmt.Sprintf("key %x is not trusted", m.Signature.Key[:8]),
		Err: ErrUnsigned}
}
