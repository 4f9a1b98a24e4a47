package image

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Policy says which images a drive takes. It is about signatures alone: the interface is checked and revoked images are
// refused under every policy.
type Policy uint8

// The policies. The numbers are part of the drive's state.
const (
	PolicyOff     Policy = 0 // any image; signatures are not looked at
	PolicyWarn    Policy = 1 // any image; an image that no trusted key signed is accepted, logged and shown
	PolicyRequire Policy = 2 // only images signed by a key that is trusted and not revoked
)

var policyNames = [...]string{"off", "warn", "require"}

func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// ParsePolicy reads require, warn or off.
func ParsePolicy(s string) (Policy, error) {
	if i := slices.Index(policyNames[:], s); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("image policy %q: want require, warn or off", s)
}

// MarshalText writes the policy's name.
func (p Policy) MarshalText() ([]byte, error) {
	if int(p) >= len(policyNames) {
		return nil, fmt.Errorf("image %s does not exist", p)
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads the policy's name.
func (p *Policy) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePolicy(string(b))
	return err
}

// Standing is a drive's verdict on an image's signature.
type Standing string

// The verdicts.
const (
	StandingTrusted   Standing = "trusted"   // signed by a key that is trusted
	StandingUnsigned  Standing = "unsigned"  // carries no signature
	StandingUntrusted Standing = "untrusted" // signed by a key that is not trusted
	StandingRevoked   Standing = "revoked"   // the image, or the key that signed it, is revoked
	StandingBad       Standing = "bad"       // the signature does not match the bytes
	StandingStock     Standing = "stock"     // the stock image, which came with the drive
)

// MaxRevoked is the most keys, and the most images, that a drive holds as revoked.
const MaxRevoked = 1024

// Trust is what a drive judges an image by. The zero value accepts any image.
type Trust struct {
	Policy        Policy
	Keys          []ed25519.PublicKey // Keys sign images. There are at most MaxKeys.
	RevokedKeys   []KeyID             // at most MaxRevoked; a key that is revoked counts as not held
	RevokedImages []ID                // at most MaxRevoked; refused under every policy
}

// ErrRevoked says that an image, or the key that signed it, is revoked.
var ErrRevoked = errors.New("revoked")

// Standing says what an image's signature is worth, and why if it is worth nothing.
func (t *Trust) Standing(m *Image) (Standing, error) {
	if slices.Contains(t.RevokedImages, m.ID) {
		return StandingRevoked, fmt.Errorf("image %s is %w", m.ID, ErrRevoked)
	}
	if m.Signature != nil && slices.Contains(t.RevokedKeys, KeyID(m.Signature.Key)) {
		return StandingRevoked, fmt.Errorf("key %s is %w", KeyID(m.Signature.Key), ErrRevoked)
	}
	err := m.Verify(t.Keys)
	switch {
	case err == nil:
		return StandingTrusted, nil
	case m.Signature == nil:
		return StandingUnsigned, err
	case errors.Is(err, ErrUnsigned):
		return StandingUntrusted, err
	}
	return StandingBad, err
}

// Judge reports by its error whether the policy accepts an image. The error is of step StepRevocation or StepSignature,
// and wraps ErrRevoked, ErrUnsigned or ErrCorrupt. warning is the finding of a policy that only warns.
func (t *Trust) Judge(m *Image) (warning, err error) {
	standing, why := t.Standing(m)
	step := StepSignature
	if standing == StandingRevoked {
		step = StepRevocation
	}
	switch {
	case standing == StandingTrusted:
		return nil, nil
	case slices.Contains(t.RevokedImages, m.ID) || t.Policy == PolicyRequire:
		return nil, &LoadError{Step: step, Image: m.ID, Want: m.Interface(), Err: why}
	case t.Policy == PolicyWarn:
		return why, nil
	}
	return nil, nil
}

// Check holds the lists against their limits.
func (t *Trust) Check() error {
	switch {
	case t.Policy > PolicyRequire:
		return fmt.Errorf("image %s does not exist", t.Policy)
	case len(t.Keys) > MaxKeys:
		return fmt.Errorf("%d image keys, at most %d", len(t.Keys), MaxKeys)
	case len(t.RevokedKeys) > MaxRevoked || len(t.RevokedImages) > MaxRevoked:
		return fmt.Errorf("%d keys and %d images revoked, at most %d each", len(t.RevokedKeys), len(t.RevokedImages),
			MaxRevoked)
	case t.Policy == PolicyRequire && len(t.Keys) == 0:
		return errors.New("image policy require without a key would refuse every image: give a key")
	}
	for _, k := range t.Keys {
		if len(k) != ed25519.PublicKeySize {
			return fmt.Errorf("an image key has %d bytes, want %d", len(k), ed25519.PublicKeySize)
		}
	}
	return nil
}

// Revoke adds keys and images to the revoked ones, each once.
func (t *Trust) Revoke(keys []KeyID, images []ID) {
	for _, k := range keys {
		if !slices.Contains(t.RevokedKeys, k) {
			t.RevokedKeys = append(t.RevokedKeys, k)
		}
	}
	for _, id := range images {
		if !slices.Contains(t.RevokedImages, id) {
			t.RevokedImages = append(t.RevokedImages, id)
		}
	}
}

// trustText is the form in which a Trust is kept in a file.
type trustText struct {
	Policy        Policy   `json:"policy"`
	Keys          []string `json:"keys"` // 32 bytes each, in hexadecimal
	RevokedKeys   []KeyID  `json:"revoked_keys"`
	RevokedImages []ID     `json:"revoked_images"`
}

// MarshalJSON writes the keys in hexadecimal.
func (t Trust) MarshalJSON() ([]byte, error) {
	x := trustText{Policy: t.Policy, Keys: []string{}, RevokedKeys: append([]KeyID{}, t.RevokedKeys...),
		RevokedImages: append([]ID{}, t.RevokedImages...)}
	for _, k := range t.Keys {
		x.Keys = append(x.Keys, hex.EncodeToString(k))
	}
	return json.Marshal(x)
}

// UnmarshalJSON reads what MarshalJSON wrote, and checks it.
func (t *Trust) UnmarshalJSON(b []byte) error {
	var x trustText
	if err := json.Unmarshal(b, &x); err != nil {
		return err
	}
	v := Trust{Policy: x.Policy, RevokedKeys: x.RevokedKeys, RevokedImages: x.RevokedImages}
	for _, s := range x.Keys {
		k, err := hex.DecodeString(s)
		if err != nil {
			return fmt.Errorf("image key: %w", err)
		}
		v.Keys = append(v.Keys, k)
	}
	if err := v.Check(); err != nil {
		return err
	}
	*t = v
	return nil
}
