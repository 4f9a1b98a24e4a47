package tcp

import (
	"bufio"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// replay sends the capsules of a file in testdata, a line each, and gives every completion, with data, to seen.
//
// A line is "CID bytes-of-the-command [data]": the 64 bytes in hexadecimal with the zeros at the end left out; data is
// "connect" for the data of Connect. A comment says what it is, and without leaves out those that it names.
func replay(t *testing.T, r *rawHost, name string, seen func(what string, cmd *nvme.Command, cpl nvme.Completion,
	data []byte), without ...string) {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	events := map[uint16]bool{}
	for in := bufio.NewScanner(f); in.Scan(); {
		line, what, _ := strings.Cut(in.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) == 0 || slices.Contains(without, strings.TrimSpace(what)) {
			continue
		}
		raw, err := hex.DecodeString(fields[0])
		require.NoError(t, err, what)
		var cmd nvme.Command
		copy(cmd[:], raw)
		var data []byte
		if len(fields) > 1 {
			require.Equal(t, "connect", fields[1])
			data = (&fabrics.ConnectData{ControllerID: fabrics.AnyController, SubsystemNQN: testNQN, HostNQN: hostNQN,
				HostID: [16]byte{1}}).Marshal()
		}
		r.send(r.bytes(pdu.TypeCapsuleCmd, 0, data, func(b []byte) { pdu.PutCommand(b, &cmd) }))
		if cmd.Opcode() == nvme.AdminAsyncEventRequest && cmd.NSID() == 0 {
			events[cmd.CID()] = true
			continue // answered when there is an event
		}
		cpl, got := r.completion(cmd.CID())
		require.True(t, cpl.Status().OK(), "%s: %s: %s", name, what, cpl.Status())
		seen(strings.TrimSpace(what), &cmd, cpl, got)
	}
	require.NotEmpty(t, events, "no event was asked for")
}

// TestCommandsOfSPDKIdentifyAreAccepted sends, one after the other, the admin commands that SPDK's identify program
// sends: four event requests, properties that no kernel reads, a shutdown at the end. It shows that the target
// completes each of them with success. SPDK itself does not run here: testdata/spdk-identify.txt was written from a
// trace of the order and the fields, so the test does not show what SPDK makes of the answers, nor how it times its
// commands.
func TestCommandsOfSPDKIdentifyAreAccepted(t *testing.T) {
	s := serve(t, TargetOptions{})
	r := s.dialRaw()
	r.initialise(pdu.ICReq{})
	seen := 0
	replay(t, r, "spdk-identify.txt", func(string, *nvme.Command, nvme.Completion, []byte) { seen++ })
	require.Greater(t, seen, 15)
}

// TestCommandsOfSPDKIdentifyOnADriveWithoutFlash sends the same commands to a drive without flash. The namespaces that
// it lists are 2 and 3; Identify Namespace returns zeros for each, which SPDK takes for a namespace that it does not
// attach, and also for namespace 1, of which the recorded commands ask.
func TestCommandsOfSPDKIdentifyOnADriveWithoutFlash(t *testing.T) {
	s := serveSubsystem(t, controller.Options{NQN: testNQN, Compute: idleCompute{}})
	r := s.dialRaw()
	r.initialise(pdu.ICReq{})
	zeros := make([]byte, nvme.IdentifySize)
	identified := false
	replay(t, r, "spdk-identify.txt", func(what string, cmd *nvme.Command, _ nvme.Completion, data []byte) {
		switch what {
		case "Namespace list":
			require.Equal(t, []uint32{2, 3}, nvme.UnmarshalNamespaceList(data))
		case "Identify Namespace":
			identified = true
			require.Equal(t, uint32(1), cmd.NSID())
			require.Equal(t, zeros, data)
		}
	}, "descriptors")
	require.True(t, identified)
}
