package kerneltest

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/tcp/kerneltest/guest"
)

//go:embed scripts
var scripts embed.FS

// The guest's own names, the same in every test.
const (
	hostNQN = "nqn.2014-08.org.nvmexpress:uuid:6d696c6c-7261-4365-8000-000000000001"
	hostID  = "6d696c6c-7261-4365-8000-000000000001"
)

// Modules of a host over NVMe/TCP, with what ext4 and digests ask the kernel's cryptography for by name.
var hostModules = []string{"?crc32c_generic", "?crct10dif_generic", "?crc64_rocksoft_generic", "nvme-tcp", "ext4"}

var hostPrograms = []string{"nvme", "fio", "mkfs.ext4", "e2fsck"}

func script(t *testing.T, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		text, err := scripts.ReadFile("scripts/" + name + ".sh")
		require.NoError(t, err)
		b.Write(text)
	}
	return b.String()
}

func library(t *testing.T) map[string][]byte {
	return map[string][]byte{"/guest/lib.sh": []byte(script(t, "lib"))}
}

// The checks that every run of the suite must have made.
var suiteChecks = []string{
	"discover", "refused-host", "wrong-nqn", "connect", "list", "list-subsys", "id-ctrl", "id-ns", "list-ns", "ns-descs",
	"smart-log", "error-log", "fw-log", "effects-log", "changed-namespaces", "unknown-log", "features", "passthru",
	"past-the-end", "unknown-opcodes", "compare", "zeroes-and-discard", "filesystem", "fio-libaio", "fio-io_uring",
	"fio-io_uring_cmd", "namespace-appears", "reset-under-io", "restart-under-io", "disconnect", "digests",
	"header-digest-only", "no-flow-control", "reconnects",
}

// The checks of a drive that computes.
var computeChecks = []string{
	"supported-logs", "vendor-log", "id-iocs", "nvm-id-ctrl", "cmdset-ind-id-ns", "compute-namespaces",
	"compute-vendor-set",
	"compute-standard-set", "namespace-event",
}

// The checks of a drive without flash.
var cardChecks = []string{
	"card-discover", "card-connect", "card-list", "card-list-subsys", "card-id-ctrl", "card-list-ns", "card-smart-log",
	"card-error-log", "card-fw-log", "card-id-iocs", "card-no-blocks", "card-vendor-set", "card-standard-set",
	"card-reset", "card-disconnect", "card-keep-alive", "card-restart",
}

// The kernel's own target shows that the suite asks for nothing that a host and a target do not do. One kernel will do.
func TestSuiteAgainstNVMet(t *testing.T) {
	t.Parallel()
	kernels := guest.Kernels(t)
	result := guest.Boot(t, guest.Options{
		Kernel: kernels[len(kernels)-1], Programs: hostPrograms, Files: library(t),
		Modules: append([]string{"nvmet-tcp", "null_blk nr_devices=0"}, hostModules...),
		Env: map[string]string{
			"TARGET": "nvmet", "ADDR": "127.0.0.1", "PORT": "4420", "NQN": nvmetNQN,
			"HOSTNQN": hostNQN, "HOSTID": hostID, "ADDS": "yes", "FEATURES": "7 0xb 0xf",
		},
		Script: script(t, "nvmet", "suite", "sessions"),
		// Over loopback nvmet receives the very pages that the host sends, and 6.1 takes those for an overrun.
		Append: "hardened_usercopy=off",
	})
	result.Subtests(t, suiteChecks...)
}

func TestSuiteAgainstOurTarget(t *testing.T) {
	for _, kernel := range guest.Kernels(t) {
		require.NotEmpty(t, blockSizes[kernel], "kernel %s takes part in nothing: say in which size of block it should",
			kernel)
		for _, blockSize := range blockSizes[kernel] {
			t.Run(fmt.Sprintf("%s/lba=%d", kernel, blockSize), func(t *testing.T) {
				t.Parallel()
				drive := startTargets(t, blockSize, uuid.NewSHA1(uuid.NameSpaceOID, []byte(t.Name()+" card")))
				files := library(t)
				files["/opt/preprocess"] = preprocess(t, blockSize)
				files["/opt/preprocess-stored"] = preprocess(t, 0)
				result := guest.Boot(t, guest.Options{
					Kernel: kernel, Programs: hostPrograms, Modules: hostModules, Files: files,
					Env: drive.env(), Host: drive.functions(),
					Script: script(t, "millrace", "suite", "compute", "sessions", "diskless"),
				})
				result.Subtests(t, slices.Concat(computeChecks, suiteChecks, cardChecks)...)
				judge(t, drive, result)
				judgeCard(t, drive, result)
			})
		}
	}
}

// One boot a kernel: each takes a size of block of its own.
var blockSizes = map[string][]uint32{"6.1": {512}, "6.12": {4096}}

// preprocess is the descriptor that compute.sh sends: 4 KiB of the first blocks to address 0, then the program from
// there to address 8192. With a block size of 0 no block is copied: diskless.sh stores the input.
func preprocess(t *testing.T, blockSize uint32) []byte {
	t.Helper()
	p := cs.Preprocess{
		Ranges: []cs.Range{{Addr: 0, Len: 4096}, {Addr: 8192, Len: 4096}},
		Args:   []byte("args"),
	}
	if blockSize > 0 {
		p.Copies = []cs.Copy{{NSID: cs.NamespaceNVM, SLBA: 0, NLB: 4096 / blockSize, Dest: 0}}
	}
	b, err := p.AppendTo(nil)
	require.NoError(t, err)
	return b
}
