// Package ownership gives files that root makes to the owner of the folder they are made in.
//
// An operator makes drives and restores control planes as root; the services that open them run as a user of their
// own. A file that root makes in a folder of that user would be closed to the service, so this package gives the file
// to the folder's owner. A process that is not root owns the files that it makes, as always.
//
// [Explain] adds to an error that says "permission denied" the user that runs the process, the file's owner, and what
// to do.
package ownership
