package faults

import (
	"encoding/binary"

	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// stream follows one direction of a connection from PDU to PDU.
type stream struct {
	in  *Injector
	dir Direction

	head   [pdu.CommonSize]byte // head is the beginning of this PDU, as far as it has come.
	at     uint32               // bytes of this PDU that have passed
	length uint32               // length is that of this PDU, known from CommonSize on.
	pdus   int64                // including this one
	lost   bool                 // this is not NVMe/TCP: no more is looked at

	header, data uint32 // offsets of the bytes to flip; 0: none
	cut          uint32 // the offset at which the connection ends; 0: none
}

// isBetweenPDUs reports whether the next byte begins a PDU.
func (s *stream) isBetweenPDUs() bool { return s.at == 0 && !s.lost }

// remainingBytes is the number of bytes of this PDU that have not arrived, as far as is known.
func (s *stream) remainingBytes() uint32 {
	if s.at < pdu.CommonSize {
		return pdu.CommonSize - s.at
	}
	return s.length - s.at
}

// takeBytes takes the next bytes of the stream. It returns how many may pass now, from 1: those of one PDU. flip is the
// index of the byte that must be made wrong, -1 for none. over means that the connection ends after them.
func (s *stream) takeBytes(p []byte, queue int32) (n int, flip int, over bool) {
	if s.lost {
		return len(p), -1, false
	}
	n = int(min(uint32(min(len(p), 1<<30)), s.remainingBytes()))
	if s.at < pdu.CommonSize {
		copy(s.head[s.at:], p[:n])
		if s.at += uint32(n); s.at == pdu.CommonSize {
			s.beginPDU(queue)
		}
		return n, -1, false
	}
	flip = -1
	for _, at := range []uint32{s.header, s.data} {
		if at < s.at || at >= s.at+uint32(n) {
			continue
		}
		if at > s.at { // first what comes before
			n = int(at - s.at)
			continue
		}
		n, flip = 1, 0
	}
	if s.cut > 0 {
		if s.at+uint32(n) >= s.cut {
			n, over = int(s.cut-s.at), true
		}
	}
	if s.at += uint32(n); s.at == s.length {
		s.at = 0
	}
	return n, flip, over
}

// beginPDU decides on the faults of a PDU whose common header has arrived.
func (s *stream) beginPDU(queue int32) {
	flags, size, offset := s.head[1], uint32(s.head[2]), uint32(s.head[3])
	s.length = binary.LittleEndian.Uint32(s.head[4:])
	s.header, s.data, s.cut = 0, 0, 0
	if s.length <= pdu.CommonSize || size < pdu.CommonSize || size > s.length {
		s.lost = true
		return
	}
	s.pdus++
	end := size
	header := flags&pdu.FlagHeaderDigest != 0 && size+pdu.DigestSize <= s.length
	if header {
		end += pdu.DigestSize
	}
	data := flags&pdu.FlagDataDigest != 0 && offset >= end && s.length > offset+pdu.DigestSize
	drop, torn := s.in.dropsConnection(queue, s.dir, s.pdus)
	switch {
	case torn: // its digests do not arrive
		s.cut = max(s.length/2, pdu.CommonSize+1)
		return
	case drop:
		s.cut = s.length
	}
	flipHeader, flipData := s.in.digestsToFlip(queue, s.dir, header, data)
	if flipHeader {
		s.header = size
	}
	if flipData {
		s.data = s.length - pdu.DigestSize
	}
}
