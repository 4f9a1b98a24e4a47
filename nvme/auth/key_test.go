package auth

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyVectors are what nvme-cli wrote and said; see testdata/README.md.
type keyVectors struct {
	Generated []struct {
		Hash  Hash
		Input string
		NQN   string
		Key   string
	}
	Accepted, Refused []struct{ Key, Says string }
}

func readKeyVectors(t testing.TB) keyVectors {
	b, err := os.ReadFile("testdata/keys.json")
	require.NoError(t, err)
	var v keyVectors
	require.NoError(t, json.Unmarshal(b, &v))
	require.NotEmpty(t, v.Generated)
	require.NotEmpty(t, v.Accepted)
	require.NotEmpty(t, v.Refused)
	return v
}

// nvme-cli 2.3 writes a given secret transformed, so its output is a vector of the form and of the transformation.
func TestKeysOfNVMeCLI(t *testing.T) {
	for _, g := range readKeyVectors(t).Generated {
		t.Run(g.Key, func(t *testing.T) {
			input, err := hex.DecodeString(g.Input)
			require.NoError(t, err)
			before, err := newKey(g.Hash, input)
			require.NoError(t, err)

			after, err := ParseKey(g.Key)
			require.NoError(t, err)
			assert.Equal(t, g.Hash, after.hash)
			assert.Equal(t, hex.EncodeToString(before.transformed(g.NQN)), hex.EncodeToString([]byte(after.secret)))
			assert.Equal(t, g.Key, after.Text())
			if g.Hash == NoHash {
				assert.Equal(t, g.Key, before.Text())
			}
		})
	}
}

func TestKeysAreJudgedAsByNVMeCLI(t *testing.T) {
	v := readKeyVectors(t)
	for _, a := range v.Accepted {
		k, err := ParseKey(a.Key)
		require.NoError(t, err, a.Key)
		assert.Equal(t, a.Key, k.Text())
	}
	for _, r := range v.Refused {
		_, err := ParseKey(r.Key)
		require.ErrorIs(t, err, ErrKey, "%s: nvme-cli says %s", r.Key, r.Says)
	}
}

func TestParseKeyRefuses(t *testing.T) {
	const good = "DHHC-1:01:YbZi6u75Bgg7wiuQR+4OmF05VP2vw392IvpOWBCz4dsDn3Jp:"
	_, err := ParseKey(good)
	require.NoError(t, err)

	for _, c := range []struct{ name, text, says string }{
		{"a newline after it", good + "\n", "end with a colon"},
		{"a space before it", " " + good, "does not start"},
		{"a newline within", good[:30] + "\n" + good[31:], "not base64"},
		{"a newline too many", good[:30] + "\n" + good[30:], "not base64"},
		{"lower case", strings.ToLower(good), "does not start"},
		{"one digit of hh", "DHHC-1:1:" + good[10:], "second field"},
		{"three digits of hh", "DHHC-1:001:" + good[10:], "second field"},
		{"hh in hex", "DHHC-1:0a:" + good[10:], "second field"},
		{"no fields", "DHHC-1:", "end with a colon"},
		{"one field", "DHHC-1:01:", "second field"},
		{"another field", good + "x:", "not base64"},
		{"url alphabet", strings.Replace(good, "+", "-", 1), "not base64"},
		{"a wrong checksum", strings.Replace(good, "YbZi", "YbZj", 1), "checksum"},
		{"too short for a checksum", "DHHC-1:00:AAA=:", "0 bytes"},
		{"40 bytes", "DHHC-1:00:" + strings.Repeat("AAAA", 14) + "AAA=:", "40 bytes"},
		{"a length of another hash", strings.Replace(good, ":01:", ":03:", 1), "SHA-512 takes 64"},
		{"endless", "DHHC-1:00:" + strings.Repeat("A", 1<<20) + ":", "too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, err := ParseKey(c.text)
			require.ErrorIs(t, err, ErrKey)
			assert.ErrorContains(t, err, c.says)
			assert.True(t, k.IsZero())
			assert.NotContains(t, err.Error(), "YbZi", "an error may not hold a part of the secret")
		})
	}
	_, err = ParseKey("DHHC-1:00:" + strings.Repeat("A", 1<<20) + ":")
	assert.Less(t, len(err.Error()), 200)
}

func TestNewKeyRefuses(t *testing.T) {
	for _, c := range []struct {
		hash Hash
		n    int
	}{{NoHash, 0}, {NoHash, 31}, {NoHash, 65}, {SHA256, 48}, {SHA384, 32}, {SHA512, 48}, {4, 32}} {
		_, err := newKey(c.hash, make([]byte, c.n))
		require.ErrorIs(t, err, ErrKey, "%v %d", c.hash, c.n)
	}
}

func TestGenerateKey(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range []Hash{NoHash, SHA256, SHA384, SHA512} {
		for range 3 {
			k, err := GenerateKey(h)
			require.NoError(t, err)
			assert.False(t, seen[k.Text()], "the same key twice")
			seen[k.Text()] = true
			again, err := ParseKey(k.Text())
			require.NoError(t, err)
			assert.Equal(t, k, again)
		}
	}
	_, err := GenerateKey(9)
	require.ErrorIs(t, err, ErrKey)
}

// A key gets into logs and panics sooner or later: however it is printed, its secret is not.
func TestKeysPrintWithoutTheirSecret(t *testing.T) {
	k, err := newKey(SHA256, []byte("0123456789abcdef0123456789abcdef"))
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		s := fmt.Sprintf(verb, k)
		assert.NotContains(t, s, "0123", verb)
		assert.Contains(t, s, "32 bytes", verb)
		s = fmt.Sprintf(verb, HostOptions{Key: k})
		assert.NotContains(t, s, "0123", verb)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("host", "key", k)
	assert.Contains(t, log.String(), "32 bytes")
	assert.NotContains(t, log.String(), "0123")
	assert.Equal(t, "no key", Key{}.String())
	assert.Empty(t, Key{}.Text())
}

func FuzzParseKey(f *testing.F) {
	v := readKeyVectors(f)
	for _, k := range v.Accepted {
		f.Add(k.Key)
	}
	for _, k := range v.Refused {
		f.Add(k.Key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseKey(text)
		if err != nil {
			require.ErrorIs(t, err, ErrKey)
			require.True(t, k.IsZero())
			return
		}
		require.Equal(t, text, k.Text(), "one key has one text")
	})
}
