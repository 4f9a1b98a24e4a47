package linklocal_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/linklocal"
)

func TestContains(t *testing.T) {
	for text, want := range map[string]bool{
		"169.254.0.0": true, "169.254.169.254": true, "169.254.255.255": true, "169.253.255.255": false, "169.255.0.0": false,
		"fe80::1": true, "fe80::1%eth0": true, "febf::1": true, "fec0::1": false, "fe7f::1": false,
		"::ffff:169.254.169.254": true, "::ffff:10.0.0.1": false, "::169.254.169.254": true, "64:ff9b::a9fe:a9fe": true,
		"64:ff9b::a00:1": false, "fd00:ec2::254": true, "fd00:ec2::253": false, "fd20:ce::254": true,
		"100.100.100.200": true, "::ffff:100.100.100.200": true, "100.100.100.201": false, "192.0.0.192": true,
		"168.63.129.16": true, "127.0.0.1": false, "::1": false, "::": false, "10.0.0.1": false, "2001:db8::1": false,
	} {
		assert.Equal(t, want, linklocal.Contains(netip.MustParseAddr(text)), text)
	}
}

func TestContainsHostAndPort(t *testing.T) {
	for host, want := range map[string]bool{
		"169.254.169.254": true, "fe80::1%eth0": true, "10.0.0.1": false, "metadata.example": false, "": false,
	} {
		assert.Equal(t, want, linklocal.ContainsHost(host), host)
	}
	for address, want := range map[string]bool{
		"169.254.169.254:80": true, "[fe80::1%eth0]:80": true, "10.0.0.1:80": false, "metadata.example:80": true, "": true,
	} {
		assert.Equal(t, want, linklocal.ContainsPort(address), address)
	}
}
