// Package ownership gives files that root makes to the owner of the folder they are made in.
//
// An operator makes drives and restores control planes as root; the services that open them run as a user of their own.
// What root makes in a folder of that user would be closed to the service, so it is given to whom the folder belongs. A
// process that is not root owns what it makes, as ever.
//
// [Explain] adds to an error that says "permission denied" who runs, whom the file belongs to, and what to do.
package ownership
