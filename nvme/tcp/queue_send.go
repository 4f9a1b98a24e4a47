package tcp

import (
	"errors"

	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// encode turns a message into PDUs.
func (q *queue) encode(b *batch, m *hostMessage) {
	s := m.slot
	switch {
	case m.raw != nil:
		b.data(m.raw)
	case m.r2t.Length == 0:
		var n uint32
		if s.inline {
			n = uint32(len(s.data))
		}
		f := q.tx.Layout(pdu.TypeCapsuleCmd, 0, n)
		p := b.reserve(f.Prefix())
		pdu.PutCommand(p, &s.cmd)
		f.Seal(p)
		if s.inline {
			q.body(b, &f, s.data)
		}
	default:
		for at, end := m.r2t.Offset, m.r2t.Offset+m.r2t.Length; at < end; {
			n := min(q.maxData, end-at)
			flags := uint8(0)
			if at+n == end {
				flags = pdu.FlagLast
			}
			f := q.tx.Layout(pdu.TypeH2CData, flags, n)
			p := b.reserve(f.Prefix())
			pdu.Data{CID: m.r2t.CID, Tag: m.r2t.Tag, Offset: at, Length: n}.Put(p)
			f.Seal(p)
			q.body(b, &f, s.data[at:at+n])
			at += n
		}
	}
}

func (q *queue) body(b *batch, f *pdu.Frame, data []byte) {
	b.data(data)
	if f.Digest {
		pdu.PutDigest(b.reserve(pdu.DigestSize), pdu.Digest(data))
	}
}

func (q *queue) settle(m *hostMessage, err error) {
	if m.slot != nil {
		if m.r2t.Length == 0 && errors.Is(err, errOutboxClosed) {
			m.slot.unsent = true
		}
		m.slot.release()
	}
	if err != nil {
		q.l.lose(err)
	}
}
