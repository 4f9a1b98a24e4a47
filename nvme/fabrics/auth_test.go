package fabrics

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/nvme"
)

// The entries as Linux lays them out (struct nvmf_auth_send_command, nvmf_auth_receive_command).
func TestAuthEntries(t *testing.T) {
	for _, c := range []struct {
		e        nvme.Command
		fctype   uint8
		n        uint32
		from40to string
	}{
		{AuthSend(72), TypeAuthSend, 72, "000101e948000000"},
		{AuthReceive(4096), TypeAuthReceive, 4096, "000101e900100000"},
	} {
		assert.Equal(t, uint8(Opcode), c.e.Opcode())
		assert.Equal(t, c.fctype, Type(&c.e))
		assert.Equal(t, c.from40to, hex.EncodeToString(c.e[40:48]))
		n, ok := ParseAuth(&c.e)
		assert.True(t, ok)
		assert.Equal(t, c.n, n)
		assert.Equal(t, c.n, c.e.SGL().Length)
	}
}

func TestParseAuthRefuses(t *testing.T) {
	for name, change := range map[string]func(e *nvme.Command){
		"protocol":       func(e *nvme.Command) { e[43] = 0xea },
		"SPSP0":          func(e *nvme.Command) { e[41] = 0 },
		"SPSP1":          func(e *nvme.Command) { e[42] = 2 },
		"length 0":       func(e *nvme.Command) { e[44] = 0; e.SetData(0) },
		"another length": func(e *nvme.Command) { e.SetData(73) },
	} {
		e := AuthSend(72)
		change(&e)
		_, ok := ParseAuth(&e)
		assert.False(t, ok, name)
	}
}
