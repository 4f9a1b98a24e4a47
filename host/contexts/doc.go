// Package contexts keeps the control planes that a user knows, and the identities by which the user calls them, in the
// file contexts.yaml.
//
// # Overview
//
// A [Context] names the members of a control plane and the PEM files of an identity. [Path] returns where the file
// lies: millrace/contexts.yaml in the user's folder of configurations. [Read] reads it, [Update] changes it, and
// [Resolve] decides what a command uses: a flag comes before an environment variable, and an environment variable
// before a context.
//
// The file is JSON, which YAML contains, because the Python package reads the same file with the standard library
// alone:
//
//	{
//	  "current": "local",
//	  "contexts": {
//	    "local": {
//	      "control": ["https://127.0.0.1:7460"],
//	      "cert": "/home/ann/.local/share/millrace/pki/operator-ann.pem",
//	      "key": "/home/ann/.local/share/millrace/pki/operator-ann.key",
//	      "ca": "/home/ann/.local/share/millrace/pki/ca.pem"
//	    }
//	  }
//	}
//
// A path that is not absolute is taken from the file's folder.
//
// # Concurrency
//
// [Update] holds a lock on a file beside contexts.yaml and replaces contexts.yaml by rename, so that readers see the
// file before or after the change.
//
// # Errors
//
// [ErrFile] says that the file cannot be used, with its path and the line. [ErrUnknown] says that the file has no
// context of the given name.
//
// # Debugging
//
// `millrace context show` prints what a command would use now, and the source of each part.
package contexts
