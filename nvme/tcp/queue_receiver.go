package tcp

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// receiveUntilEnd takes PDUs until the connection ends, and ends the queue then.
func (q *queue) receiveUntilEnd() {
	var header []byte
	var err error
	for err == nil {
		header, err = q.receiveOne()
	}
	var breach *pdu.Error
	if q.l.ending.Load() && q.id != 0 {
		q.endCommands()
		return
	}
	unwritable := q.unwritable.Load()
	switch told := errors.As(err, &breach); {
	case told && header != nil:
		q.l.endForBreach(q, breach, header)
	case told: // by the drive, which explains every other error
	case unwritable != nil:
		err = *unwritable
	case errors.Is(err, io.EOF):
		err = errors.New("the drive closed the connection")
	}
	q.l.endWithCause(fmt.Errorf("queue %d: %w", q.id, err))
	q.endCommands()
}

// endCommands ends every command, once nothing is received any more.
func (q *queue) endCommands() {
	_ = q.nc.Close()
	q.out.Stop(errLinkLost)
	for i := range q.entries {
		if v := q.entries[i].cid.Load(); v != 0 {
			q.entries[i].finishCommand(uint16(v), nvme.Completion{}, errLinkLost)
		}
	}
	close(q.ended)
}

func (q *queue) receiveOne() (header []byte, err error) {
	f, header, err := q.rx.NextPDU()
	if err != nil {
		return header, err
	}
	switch f.Type {
	case pdu.TypeCapsuleResp:
		cpl := pdu.CompletionOf(header)
		s := q.findEntry(cpl.CID())
		if s == nil {
			return header, pdu.Invalid(20, "completion of command %d, which is not outstanding", cpl.CID())
		}
		q.completeCommand(s, cpl)
		return nil, nil
	case pdu.TypeC2HData:
		return header, q.receiveData(&f, header)
	case pdu.TypeR2T:
		return header, q.receiveR2T(header)
	case pdu.TypeC2HTermReq:
		return nil, fmt.Errorf("the drive ended the connection: %w", pdu.ParseTerminate(header))
	}
	return header, pdu.Invalid(0, "a %s from a controller", f.Type)
}

// findEntry returns the entry whose command awaits its answer.
func (q *queue) findEntry(cid uint16) *entry {
	if i := int(cid & (maxEntries - 1)); i < len(q.entries) && q.entries[i].cid.Load() == entryUsed|uint32(cid) {
		return &q.entries[i]
	}
	return nil
}

// completeCommand ends a command with what the drive says of it.
func (q *queue) completeCommand(s *entry, cpl nvme.Completion) {
	if cpl.Status().OK() && s.dir == nvme.ControllerToHost {
		switch {
		case s.broken:
			cpl.SetStatus(nvme.TransientTransportError)
		case int(s.got) != len(s.data):
			cpl.SetStatus(nvme.DataTransferError)
		}
	}
	s.finishCommand(s.cmd.CID(), cpl, nil)
}

func (q *queue) receiveData(f *pdu.Frame, header []byte) error {
	d, err := pdu.ParseData(f, header)
	if err != nil {
		return err
	}
	s := q.findEntry(d.CID)
	last, success := f.Flags&pdu.FlagLast != 0, f.Flags&pdu.FlagSuccess != 0
	switch {
	case s == nil:
		return pdu.Invalid(8, "data of command %d, which is not outstanding", d.CID)
	case s.dir != nvme.ControllerToHost:
		return pdu.Invalid(8, "data of command %d, which reads nothing", d.CID)
	case d.Offset != s.got || uint64(d.Offset)+uint64(d.Length) > uint64(len(s.data)):
		return &pdu.Error{Status: pdu.FatalRange, Info: 12, Why: fmt.Sprintf("data %d+%d where %d of %d bytes have come",
			d.Offset, d.Length, s.got, len(s.data))}
	case success && !last:
		return pdu.Invalid(1, "success before the last data")
	}
	intact, err := q.rx.ReadData(f, s.data[d.Offset:d.Offset+d.Length])
	if err != nil {
		return err
	}
	s.got += d.Length
	if !intact {
		s.broken = true
		q.l.h.digests.Add(1)
	}
	if success {
		q.completeCommand(s, nvme.NewCompletion(d.CID, nvme.Success))
	}
	return nil
}

func (q *queue) receiveR2T(header []byte) error {
	r := pdu.ParseR2T(header)
	s := q.findEntry(r.CID)
	switch {
	case s == nil:
		return pdu.Invalid(8, "a request for data of command %d, which is not outstanding", r.CID)
	case s.dir != nvme.HostToController || s.inline || r.Length == 0:
		return pdu.Invalid(16, "a request for %d bytes of command %d", r.Length, r.CID)
	case r.Offset != s.asked || uint64(r.Offset)+uint64(r.Length) > uint64(len(s.data)):
		return &pdu.Error{Status: pdu.FatalRange, Info: 12,
			Why: fmt.Sprintf("a request for %d+%d where %d of %d bytes were asked for", r.Offset, r.Length, s.asked,
				len(s.data))}
	}
	s.asked += r.Length
	s.holds.Add(1)
	if err := q.out.Queue(hostMessage{entry: s, r2t: r}, false); err != nil {
		s.releaseHold()
		q.failWrite(err)
	}
	return nil
}
