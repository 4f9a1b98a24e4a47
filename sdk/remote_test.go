package sdk_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
)

// TestKeysOverTCP: a drive that demands a key is opened with it, and the host's demand is met.
func TestKeysOverTCP(t *testing.T) {
	host, err := auth.GenerateKey(auth.SHA256)
	require.NoError(t, err)
	ctrl, err := auth.GenerateKey(auth.SHA256)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, k := range map[string]auth.Key{"host": host, "ctrl": ctrl} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(k.Text()+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(dir+"/bad", []byte("DHHC-1:00:x:"), 0o600))
	auth := &tcp.AuthOptions{Keys: map[string]tcp.HostKeys{tcp.AnyHost: {Host: host, Controller: ctrl}}}
	uri, _ := served(t, csd.Options{SLMBytes: 1 << 20}, tcp.TargetOptions{Auth: auth}, make([]byte, 4096))
	dev, err := sdk.Open(t.Context(), uri+"?keyfile="+dir+"/host&ctrlkeyfile="+dir+"/ctrl", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	for query, says := range map[string]string{
		"":                          "key",
		"?keyfile=" + dir + "/ctrl": "authenticat",
		"?keyfile=" + dir + "/none": "no such file",
		"?keyfile=" + dir + "/bad":  "key in",
	} {
		_, err := sdk.Open(t.Context(), uri+query, sdk.DeviceOptions{})
		require.ErrorContains(t, err, says, query)
		assert.NotContains(t, err.Error(), host.Text())
	}
}

func TestAllowListOverTCP(t *testing.T) {
	uri, _ := served(t, csd.Options{SLMBytes: 1 << 20},
		tcp.TargetOptions{Hosts: []string{"nqn.2024-01.io.millrace:friend"}}, make([]byte, 4096))
	_, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.ErrorContains(t, err, "allow-list")
	dev, err := sdk.Open(t.Context(), uri+"?hostnqn=nqn.2024-01.io.millrace:friend", sdk.DeviceOptions{})
	require.NoError(t, err)
	_, err = dev.WriteAt(make([]byte, 512), 0)
	require.ErrorIs(t, err, nvme.WriteProtected, "it is files")
	require.NoError(t, dev.Close())
	_, err = sdk.Create(t.Context(), uri, sdk.DeviceOptions{})
	require.ErrorIs(t, err, sdk.ErrURI)
}
