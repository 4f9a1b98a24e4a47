// Package identity gives control planes, storage nodes, launchers and operators an identity, and proves it with mutual
// TLS.
//
// # Overview
//
// An identity is a [Role] and a name, written into a certificate as the URI spiffe://millrace/ROLE/NAME.
// [InitAuthority] makes a certificate authority in a folder, [Issue] signs a certificate with it (`millrace pki`);
// certificates of any other authority do as well, as long as they carry that URI. [Options] name the files and become
// the [tls.Config] of either side; files that are replaced are taken up with the next connection, so certificates are
// rotated without a restart.
//
// Between hosts TLS is on by default: [Listen] refuses to listen in clear on anything but loopback and unix sockets,
// unless the operator names the network that is trusted. [HTTPClient] speaks to http://, https:// and unix:PATH.
//
// # Concurrency
//
// Everything may be used from any number of goroutines.
//
// # Errors
//
// [ErrCertificate] for PEM files that cannot be used, [ErrPeer] for a peer without an identity or in the wrong role,
// [ErrInsecure] for an address that needs TLS.
//
// # Debugging
//
// `openssl x509 -in node.pem -noout -text` shows a certificate's URI; `openssl s_client -connect HOST:PORT -cert ...
// -key ...` shows which side refuses.
package identity
