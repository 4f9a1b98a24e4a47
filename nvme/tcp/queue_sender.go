package tcp

import (
	"errors"
	"time"

	"github.com/millrace/millrace/nvme/tcp/pdu"
	"github.com/millrace/millrace/nvme/tcp/stream"
)

// encodeMessage turns a message into PDUs.
func (q *queue) encodeMessage(b *stream.Batch, m *hostMessage) {
	s := m.entry
	switch {
	case m.raw != nil:
		b.AddData(m.raw)
	case m.r2t.Length == 0:
		var n uint32
		if s.inline {
			n = uint32(len(s.data))
		}
		f := q.tx.Layout(pdu.TypeCapsuleCmd, 0, n)
		p := b.Reserve(f.Prefix())
		pdu.PutCommand(p, &s.cmd)
		f.Seal(p)
		if s.inline {
			q.encodeBody(b, &f, s.data)
		}
	default:
		for at, end := m.r2t.Offset, m.r2t.Offset+m.r2t.Length; at < end; {
			n := min(q.maxData, end-at)
			flags := uint8(0)
			if at+n == end {
				flags = pdu.FlagLast
			}
			f := q.tx.Layout(pdu.TypeH2CData, flags, n)
			p := b.Reserve(f.Prefix())
			pdu.Data{CID: m.r2t.CID, Tag: m.r2t.Tag, Offset: at, Length: n}.Put(p)
			f.Seal(p)
			q.encodeBody(b, &f, s.data[at:at+n])
			at += n
		}
	}
}

func (q *queue) encodeBody(b *stream.Batch, f *pdu.Frame, data []byte) {
	b.AddData(data)
	if f.Digest {
		pdu.PutDigest(b.Reserve(pdu.DigestSize), pdu.Digest(data))
	}
}

func (q *queue) settleMessage(m *hostMessage, err error) {
	if m.entry != nil {
		if m.r2t.Length == 0 && errors.Is(err, stream.ErrClosed) {
			m.entry.unsent = true
		}
		m.entry.releaseHold()
	}
	if err != nil {
		q.failWrite(err)
	}
}

// drainTime bounds how long a connection that cannot be written any more is still read. A connection that the drive
// closed ends at once, behind the last byte that came.
const drainTime = 2 * time.Second

// failWrite makes the queue end because nothing can be written any more. The drive may have said why before it closed
// the connection, and that may not have been read yet; so the connection is not closed here, but by receive, once it
// has read what came.
func (q *queue) failWrite(err error) {
	if q.unwritable.CompareAndSwap(nil, &err) {
		if q.nc.SetReadDeadline(time.Now().Add(drainTime)) != nil {
			_ = q.nc.Close()
		}
	}
}
