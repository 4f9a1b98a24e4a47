//go:build debug

package sdk

// poison overwrites memory that is given back, so that whoever still looks at it sees that it is not theirs.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}
