package image

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func keyPair(seed byte) (ed25519.PrivateKey, ed25519.PublicKey) {
	k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	return k, k.Public().(ed25519.PublicKey)
}

func parsed(t testing.TB, b []byte) *Image {
	t.Helper()
	m, err := Parse(b)
	require.NoError(t, err)
	return m
}

func TestTrust(t *testing.T) {
	key, pub := keyPair(1)
	gone, gonePub := keyPair(2)
	stranger, _ := keyPair(3)
	plain := parsed(t, built(t, sample()))
	signed := func(k ed25519.PrivateKey) *Image {
		b, err := plain.Sign(k)
		require.NoError(t, err)
		return parsed(t, b)
	}
	forged := signed(key)
	forged.bytes = bytes.Clone(forged.bytes)
	forged.bytes[len(forged.bytes)-1]++ // of the signature
	forged = parsed(t, forged.bytes)
	revoked := sample()
	revoked.Partition.Slots++
	banned := parsed(t, built(t, revoked))

	trust := Trust{Keys: []ed25519.PublicKey{gonePub, pub}, RevokedKeys: []KeyID{KeyOf(gonePub)},
		RevokedImages: []ID{banned.ID}}
	for _, tt := range []struct {
		name     string
		image    *Image
		standing Standing
		step     Step
		kind     error
		refused  Policy // the least policy that refuses it; PolicyRequire + 1: none does
	}{
		{"signed by a trusted key", signed(key), StandingTrusted, "", nil, PolicyRequire + 1},
		{"unsigned", plain, StandingUnsigned, StepSignature, ErrUnsigned, PolicyRequire},
		{"signed by a stranger", signed(stranger), StandingUntrusted, StepSignature, ErrUnsigned, PolicyRequire},
		{"signed by a revoked key", signed(gone), StandingRevoked, StepRevocation, ErrRevoked, PolicyRequire},
		{"forged", forged, StandingBad, StepSignature, ErrCorrupt, PolicyRequire},
		{"revoked image", banned, StandingRevoked, StepRevocation, ErrRevoked, PolicyOff},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := trust.Standing(tt.image)
			assert.Equal(t, tt.standing, got)
			for p := PolicyOff; p <= PolicyRequire; p++ {
				trust := trust
				trust.Policy = p
				warning, err := trust.Judge(tt.image)
				if p < tt.refused {
					require.NoError(t, err, "%s", p)
					assert.Equal(t, p == PolicyWarn && tt.standing != StandingTrusted, warning != nil, "%s", p)
					continue
				}
				var e *LoadError
				require.ErrorAs(t, err, &e, "%s", p)
				require.ErrorIs(t, err, tt.kind)
				assert.Equal(t, tt.step, e.Step)
				assert.Equal(t, tt.image.ID, e.Image)
			}
		})
	}
}

func TestTrustInText(t *testing.T) {
	_, pub := keyPair(1)
	want := Trust{Policy: PolicyWarn, Keys: []ed25519.PublicKey{pub}}
	want.Revoke([]KeyID{{1}, {2}, {1}}, []ID{{3}, {3}})
	assert.Len(t, want.RevokedKeys, 2)
	assert.Len(t, want.RevokedImages, 1)
	b, err := json.Marshal(want)
	require.NoError(t, err)
	var got Trust
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Equal(t, want, got)
	b, err = json.Marshal(Trust{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"policy": "off", "keys": [], "revoked_keys": [], "revoked_images": []}`, string(b))
	for name, text := range map[string]string{
		"policy": `{"policy": "sometimes"}`,
		"hex":    `{"keys": ["xy"]}`,
		"length": `{"keys": ["0102"]}`,
		"no key": `{"policy": "require"}`,
		"key id": `{"revoked_keys": ["01"]}`,
		"too big": `{"revoked_images": [` + strings.Repeat(`"`+strings.Repeat("0", 64)+`",`,
			MaxRevoked) + `"` + strings.Repeat("0", 64) + `"]}`,
	} {
		before := got
		require.Error(t, json.Unmarshal([]byte(text), &got), name)
		assert.Equal(t, before, got, name)
	}
	for _, p := range []Policy{PolicyOff, PolicyWarn, PolicyRequire} {
		back, err := ParsePolicy(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, back)
	}
	_, err = Policy(9).MarshalText()
	require.Error(t, err)
	many := Trust{Keys: make([]ed25519.PublicKey, MaxKeys+1)}
	require.Error(t, many.Check())
	require.Error(t, (&Trust{Policy: 9}).Check())
}

func TestLoadErrorTellsBothInterfaces(t *testing.T) {
	want, have := sample().Interface, shellInterface
	cause := errors.New("nothing came out")
	e := &LoadError{Step: StepSelfTest, Slot: 2, Image: ID{0xab}, Want: want, Have: have, Err: cause}
	assert.Equal(t,
		"image ab00000000000000 for slot 2 refused at step self-test: nothing came out (the image needs interface "+
			want.String()+", the drive has "+have.String()+")", e.Error())
	require.ErrorIs(t, e, ErrSelfTest)
	require.ErrorIs(t, e, cause)
	same := &LoadError{Step: StepSelfTest, Slot: 2, Image: ID{0xab}, Want: have, Have: have, Err: cause}
	assert.Contains(t, same.Error(), "nothing came out (the interface of both is "+have.String()+")")
	for step, kind := range map[Step]error{
		StepInterface: ErrInterface, StepRevocation: ErrRevoked, StepSignature: ErrUnsigned,
		StepIdentifier: ErrIdentifier, StepInUse: ErrInUse,
		StepStore: ErrStore, StepBackend: ErrBackend, StepSelfTest: ErrSelfTest, StepCommit: ErrCommit,
	} {
		require.ErrorIs(t, &LoadError{Step: step, Err: cause}, kind)
	}
	e = &LoadError{Step: StepFormat, Have: have, Err: &Error{Detail: "short", Err: ErrCorrupt}}
	require.ErrorIs(t, e, ErrCorrupt)
	assert.Contains(t, e.Error(), "could not be read")
	assert.NotContains(t, (&LoadError{Step: StepFormat, Err: cause}).Error(), "interface", "no drive is concerned")
}
