// Package contexts keeps, for one user, which control planes there are and how to speak to them: contexts.yaml.
//
// # Overview
//
// A [Context] is a name for the members of a control plane and the PEM files of an identity there. [Path] says where
// the file lies: millrace/contexts.yaml in the user's folder of configurations. [Read] reads it, [Update] changes it,
// and [Resolve] decides what a command uses: a flag goes before an environment variable, and that before a context.
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
// [Update] holds a lock on a file beside contexts.yaml, and replaces contexts.yaml by rename: readers see one or the
// other.
//
// # Errors
//
// [ErrFile] for a file that cannot be read, with its path and the line; [ErrUnknown] for a name that is not in it.
//
// # Debugging
//
// `millrace context show` prints what a command would use now, and from where each part comes.
package contexts
