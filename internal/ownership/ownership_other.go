//go:build !unix

package ownership

// Inherit changes nothing where files have no owner's number.
func Inherit(string, string) error { return nil }

// Explain returns the error as it is where files have no owner's number.
func Explain(err error, _ string) error { return err }
