package flash

import "testing"

// Break makes the file of a flash one that can be neither read, nor written, nor synced, until mend is called.
func Break(t *testing.T, f Flash) (mend func()) {
	ff := f.(*File)
	good := ff.f
	ff.f = brokenFile(t)
	return func() { ff.f = good }
}
