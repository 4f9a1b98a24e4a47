package guest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

func TestBootTellsWhatTheScriptDid(t *testing.T) {
	for _, kernel := range guest.Kernels(t) {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			result := guest.Boot(t, guest.Options{
				Kernel:   kernel,
				Programs: []string{"nvme", "fio", "mkfs.ext4"},
				Modules:  []string{"nvme-tcp"},
				Files:    map[string][]byte{"/opt/greeting": []byte("#!/bin/sh\necho hello $1\n")},
				Env:      map[string]string{"WHO": "it's me"},
				Host: map[string]func([]string) (string, error){
					"double": func(args []string) (string, error) { return strings.Repeat(args[0], 2), nil },
					"refuse": func([]string) (string, error) { return "", errors.New("not today") },
				},
				Script: `
check programs sh -c 'nvme version && fio --version && mkfs.ext4 -V && ` +
					`ls /sys/class/net/eth0 && test -e /sys/module/nvme_tcp'
check file /opt/greeting "$WHO"
check fails sh -c 'echo why; exit 3'
asks() { [ "$(host double 'a b')" = 'a ba b' ]; host refuse && exit 1; true; }
check asks asks
LIMIT=1
check slow sleep 30
skip other not here
seq 1 20000 >/tmp/numbers
keep numbers /tmp/numbers
exit 7
`,
			})
			assert.True(t, strings.Contains(result.Uname, "Linux") && strings.Contains(result.Uname, kernel+"."), result.Uname)
			require.Len(t, result.Checks, 6)
			status := map[string]int{}
			for _, c := range result.Checks {
				status[c.Name] = c.Status
			}
			assert.Equal(t, map[string]int{"programs": 0, "file": 0, "fails": 3, "asks": 0, "slow": 137, "other": 0}, status,
				"%+v", result.Checks)
			assert.Equal(t, "hello it's me\n", result.Checks[1].Output)
			assert.Equal(t, "why\n", result.Checks[2].Output)
			assert.Contains(t, result.Checks[4].Output, "not done in 1 s")
			assert.Equal(t, "not here", result.Checks[5].Skipped)
			assert.Equal(t, 108894, len(result.Files["numbers"]))
			assert.Equal(t, 7, result.Status)
		})
	}
}
