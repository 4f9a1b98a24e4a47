package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// IdentityKind says by which property two states of a source differ.
type IdentityKind string

// The kinds of identities.
const (
	// ByETag is the strong ETag of an object, with its quotation marks.
	ByETag IdentityKind = "etag"
	// ByVersion is the version of an object in a bucket that keeps versions.
	ByVersion IdentityKind = "version"
	// ByFile is device, inode and time of the last change of a file. It means nothing on another machine.
	ByFile IdentityKind = "file"
	// ByContent is the digest of a partition in a manifest, in hexadecimal: that of a Parquet file's footer and samples
	// of its bytes, or of a whole text.
	ByContent IdentityKind = "content"
)

// maxIdentity bounds the text of an identity. S3 versions have up to 1,024 bytes, ETags fewer.
const maxIdentity = 2048

// ErrIdentity says that a text is not an identity.
var ErrIdentity = errors.New("no identity of a source")

// Identity distinguishes one state of a source from every other. The zero value is not an identity.
type Identity struct {
	Kind  IdentityKind
	Value string
	Size  int64 // bytes of the source
}

// IsZero reports whether there is no identity.
func (i Identity) IsZero() bool { return i == Identity{} }

// String returns the form that ParseIdentity reads: etag:1048576:"5eb63bbb". The zero identity is the empty text.
func (i Identity) String() string {
	if i.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s:%d:%s", i.Kind, i.Size, i.Value)
}

// ParseIdentity reads the form that String writes. The error wraps ErrIdentity.
func ParseIdentity(s string) (Identity, error) {
	if s == "" {
		return Identity{}, nil
	}
	refuse := func(why string) (Identity, error) {
		return Identity{}, fmt.Errorf("%w: %.80q: %s; want KIND:BYTES:VALUE as etag:1048576:\"5eb63bbb\"", ErrIdentity, s,
			why)
	}
	if len(s) > maxIdentity {
		return refuse(fmt.Sprintf("it has %d bytes, the limit is %d", len(s), maxIdentity))
	}
	kind, rest, _ := strings.Cut(s, ":")
	digits, value, found := strings.Cut(rest, ":")
	if !found || value == "" {
		return refuse("a part is missing")
	}
	switch IdentityKind(kind) {
	case ByETag, ByVersion, ByFile, ByContent:
	default:
		return refuse("the kind is not known")
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != digits {
		return refuse("the number of bytes is none")
	}
	for _, b := range []byte(value) {
		if b < ' ' || b == 0x7f {
			return refuse("the value has a control character")
		}
	}
	return Identity{Kind: IdentityKind(kind), Value: value, Size: size}, nil
}
