package ledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestRestoredIsTheSame restores a new leader from a snapshot at any moment. When the ranks have shown their leases,
// the new leader is in the state of the old leader.
func TestRestoredIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			w.step()
		}
		type standing struct {
			token  dataset.Token
			leases []Grant
			status JobStatus
		}
		stand := func() (all []standing) {
			for _, j := range w.jobs {
				token, err := w.l.Token(j.ID)
				require.NoError(t, err)
				st, err := w.l.Status(j.ID, w.now)
				require.NoError(t, err)
				st.Redelivered, st.Bound, st.Allowed = 0, 0, 0 // not part of the durable state
				st.Enlisted, st.Orphans = 0, 0
				for i := range st.Ranks {
					st.Ranks[i].Wanted, st.Ranks[i].Waiting, st.Ranks[i].Attached = 0, "", false
					st.Ranks[i].Own, st.Ranks[i].Granted, st.Ranks[i].Share = 0, 0, 0
				}
				all = append(all, standing{token, leasesOf(w.l, j.ID), st})
			}
			return all
		}
		// A trainer may have more mini-batches than it has acknowledged, and there may be leases that no trainer knows.
		w.pass(DefaultLeaseTTL)
		for _, tr := range w.trainers {
			w.beat(tr)
			w.acknowledge(tr, tr.owned)
			w.call(tr, w.l.Want(tr.job, tr.session, tr.epoch, 0, w.now))
		}
		for _, tr := range w.trainers { // leases that the repeated acknowledgements ended
			w.beat(tr)
		}
		before := stand()

		w.store = map[string][]byte{}
		for _, j := range w.jobs {
			records, err := w.l.Snapshot(j.ID)
			require.NoError(t, err)
			for _, r := range records {
				if r.Data != nil {
					w.store[j.ID+"/"+r.Key()] = r.Data
				}
			}
		}
		w.lead()
		for _, tr := range w.trainers {
			w.adoptLease(tr)
		}
		require.Equal(t, before, stand())
	})
}

// TestStoreIsTheSnapshot: the flushed records equal the records of a snapshot bit by bit.
func TestStoreIsTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			w.step()
		}
		w.flush(1 << 20)
		require.Zero(t, w.l.Pending())
		for _, j := range w.jobs {
			records, err := w.l.Snapshot(j.ID)
			require.NoError(t, err)
			fresh := New(Config{Fence: 99})
			stored := New(Config{Fence: 99})
			for _, l := range []*Ledger{fresh, stored} {
				require.NoError(t, l.AddJob(j))
			}
			require.NoError(t, fresh.Restore(records[0]))
			require.NoError(t, stored.Restore(format.Record{Job: j.ID, Kind: format.RanksRecord, Data: w.store[j.ID+"/ranks"]}))
			require.Equal(t, fresh.Live(j.ID), stored.Live(j.ID))
			for _, e := range fresh.Live(j.ID) {
				require.NoError(t, fresh.Begin(w.epochs[j.ID][e], w.now))
				require.NoError(t, stored.Begin(w.epochs[j.ID][e], w.now))
			}
			for _, r := range records[1:] {
				if r.Data != nil {
					require.NoError(t, fresh.Restore(r))
				}
			}
			for key, data := range w.store {
				if k := key[3:]; key[:2] == j.ID && k != "ranks" {
					r, err := format.RecordOf(j.ID, k, data)
					require.NoError(t, err)
					require.NoError(t, stored.Restore(r))
				}
			}
			require.NoError(t, fresh.EndRestore(j.ID))
			require.NoError(t, stored.EndRestore(j.ID))
			require.NoError(t, stored.verify())
			a, err := fresh.Token(j.ID)
			require.NoError(t, err)
			b, err := stored.Token(j.ID)
			require.NoError(t, err)
			require.Equal(t, a, b)
		}
	})
}

// TestFlushWritesFewRecords: 5,000 splits delivered in random order need one record for each chunk, not for each
// split.
func TestFlushWritesFewRecords(t *testing.T) {
	const splits = 5000
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 2}, fmt.Sprintf("a:%d", 2*splits))
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	assert.Len(t, l.Flush(100), 1, "the ranks")

	// Every third split first: five bitmaps, and no mark, for split 0 was not delivered.
	var runs []dataset.Range
	for p := uint64(1); p < splits; p += 3 {
		runs = append(runs, dataset.Range{From: 2 * p, To: 2*p + 2})
	}
	require.NoError(t, l.Acknowledge("x", a.Session, 0, runs, scriptStart))
	assert.Equal(t, 5, l.Pending())
	assert.Len(t, l.Flush(100), 5)

	// Then the first 2,100 splits: the mark, the bitmap in which the mark is, and the two bitmaps that the mark has
	// passed.
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 0, To: 4200}}, scriptStart))
	var kinds []string
	for _, r := range l.Flush(100) {
		what := r.Key()
		if r.Data == nil {
			what = "delete " + what
		}
		kinds = append(kinds, what)
	}
	assert.Equal(t, []string{"e0/mark", "e0/c000002", "delete e0/c000000", "delete e0/c000001"}, kinds)

	// Then the other splits: only the mark is left.
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 0, To: 2 * splits}}, scriptStart))
	assert.Len(t, l.Flush(100), 4)
	assert.Zero(t, l.Pending())
	records, err := l.Snapshot("x")
	require.NoError(t, err)
	assert.Len(t, records, 2)
}

// TestMarkDeletesWhatItPasses: a bitmap that was full and stored long before the mark passed it is deleted.
func TestMarkDeletesWhatItPasses(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 1}, "a:3000")
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 1024, To: 2048}}, scriptStart))
	assert.Len(t, l.Flush(100), 2, "the ranks and a bitmap")
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 0, To: 1024}}, scriptStart))
	out := l.Flush(100)
	require.Len(t, out, 2)
	assert.Equal(t, "e0/mark", out[0].Key())
	assert.Equal(t, format.Record{Job: "x", Kind: format.ChunkRecord, Chunk: 1}, out[1])
}

// TestAnAcknowledgedNumberIsPendingUntilItIsFlushed: an acknowledgement inside a split is a change of the split's
// chunk, and a leader that has only the flushed records knows the acknowledgement. The chunk's record holds no trace of
// a split that is finished, or that a token has taken back.
func TestAnAcknowledgedNumberIsPendingUntilItIsFlushed(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 10}, "a:40")
	token := numberset.Runs{{From: 12, To: 14}}.Token(digestOf("x"), 0)
	epoch := Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names, Resume: &token}
	store := map[string]format.Record{}
	lead := func() *Ledger {
		l := New(Config{Fence: 1})
		require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
		if ranks, stored := store["ranks"]; stored {
			require.NoError(t, l.Restore(ranks))
		}
		require.NoError(t, l.Begin(epoch, scriptStart))
		for key, r := range store {
			if key != "ranks" {
				require.NoError(t, l.Restore(r))
			}
		}
		require.NoError(t, l.verify())
		return l
	}
	flush := func(l *Ledger, keys ...string) {
		t.Helper()
		assert.Positive(t, l.Pending())
		var got []string
		for _, r := range l.Flush(100) {
			got = append(got, r.Key())
			if store[r.Key()] = r; r.Data == nil {
				delete(store, r.Key())
			}
		}
		assert.Equal(t, keys, got)
		assert.Zero(t, l.Pending())
		tokenNow, err := l.Token("x")
		require.NoError(t, err)
		restored := lead()
		tokenThen, err := restored.Token("x")
		require.NoError(t, err)
		assert.Equal(t, tokenNow, tokenThen)
		assert.Zero(t, restored.Pending(), "what was restored is stored")
	}
	l := lead()
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	b, err := l.Attach("x", 1, nil, scriptStart)
	require.NoError(t, err)
	flush(l, "ranks")
	acknowledge := func(s Session, from, to uint64) {
		t.Helper()
		require.NoError(t, l.Acknowledge("x", s, 0, []dataset.Range{{From: from, To: to}}, scriptStart))
	}
	acknowledge(a.Session, 3, 5) // inside split 0
	flush(l, "e0/c000000")
	acknowledge(a.Session, 11, 15) // inside split 1, around the resumed numbers
	acknowledge(a.Session, 20, 21) // of split 2, which the ranks share
	acknowledge(b.Session, 24, 30)
	flush(l, "e0/c000000")
	acknowledge(a.Session, 11, 14) // what is delivered already
	assert.Zero(t, l.Pending())
	acknowledge(a.Session, 0, 20)
	flush(l, "e0/mark", "e0/c000000")
	l = lead()
	back := numberset.Runs{{From: 12, To: 14}}.Token(digestOf("x"), 0)
	_, err = l.Attach("x", 0, &back, scriptStart)
	require.NoError(t, err)
	flush(l, "ranks", "e0/c000000", "e0/mark")
	_, err = l.Attach("x", 1, &back, scriptStart)
	require.NoError(t, err)
	flush(l, "ranks", "e0/c000000")
	assert.Len(t, store, 1, "nothing is delivered, so that only the ranks have a record")
}

// TestRunsAreBounded: acknowledgements and tokens that would make a chunk's record too large for etcd are refused.
func TestRunsAreBounded(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 1024}, fmt.Sprintf("a:%d", 2*format.MaxRuns))
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}, scriptStart))
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	var runs []dataset.Range
	for i := range uint64(format.MaxRuns) {
		runs = append(runs, dataset.Range{From: 2 * i, To: 2*i + 1})
	}
	require.NoError(t, l.Acknowledge("x", a.Session, 0, runs, scriptStart))
	more := []dataset.Range{{From: 1, To: 2}}
	err = l.Acknowledge("x", a.Session, 0, more, scriptStart)
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "beyond the limit of 131072")
	for _, r := range l.Flush(100) {
		assert.Less(t, len(r.Data), 1<<20, r.Key())
	}
	token := numberset.Runs{{From: 0, To: 1}, {From: 2, To: 3}}.Token(digestOf("x"), 0)
	_, err = l.Attach("x", 0, &token, scriptStart)
	require.ErrorIs(t, err, ErrArgument)
	none := numberset.Runs(nil).Token(digestOf("x"), 0)
	a, err = l.Attach("x", 0, &none, scriptStart)
	require.NoError(t, err)
	require.NoError(t, l.Acknowledge("x", a.Session, 0, more, scriptStart), "the token has taken the runs back")
}

// TestRecordsRefuse restores records that are not those of the plan. Package format tests bytes that no record has.
func TestRecordsRefuse(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 2}, "a:3000")
	fresh := func() *Ledger {
		l := New(Config{})
		require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
		require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
		return l
	}
	chunk := func(number uint32, data []byte) format.Record {
		return format.Record{Job: "x", Kind: format.ChunkRecord, Chunk: number, Data: data}
	}
	mark := func(mark, splits int) format.Record {
		return format.Record{Job: "x", Kind: format.MarkRecord, Data: format.EncodeMark(1, mark, splits)}
	}
	bits := numberset.NewBits(format.ChunkSplits)
	bits.Fill(0, format.ChunkSplits)
	full := format.EncodeChunk(1, bits, 0, 1024, nil)
	bits = numberset.NewBits(format.ChunkSplits)
	bits.Fill(0, 476)
	short := format.EncodeChunk(1, bits, 0, 476, nil)
	unfinished := func(to uint64) []byte {
		return format.EncodeChunk(1, numberset.NewBits(format.ChunkSplits), 0, 476,
			[]format.Part{{Split: 3, Runs: numberset.Runs{{From: 0, To: to}}}})
	}
	for _, r := range []format.Record{chunk(0, full), chunk(1, short), chunk(1, unfinished(1)), mark(1500, 1500)} {
		require.NoError(t, fresh().Restore(r))
	}
	for _, c := range []struct {
		name string
		r    format.Record
		want string
	}{
		{"a cut body", chunk(0, full[:100]), "changed or cut"},
		{"another size", chunk(0, short), "chunk of 476 splits, the plan has 1024 there"},
		{"beyond the plan", chunk(2, short), "the plan has 1500 splits"},
		{"a run beyond its split", chunk(1, unfinished(3)),
			"numbers [0, 3) of split 1027, which is unfinished and owes 2"},
		{"a whole split as an unfinished one", chunk(1, unfinished(2)),
			"numbers [0, 2) of split 1027, which is unfinished and owes 2"},
		{"a mark of another plan", mark(10, 1400), "mark 10 of 1400 splits, the plan has 1500"},
		{"a mark beyond", mark(1501, 1500), "mark 1501 of 1500"},
		{"ranks after an epoch", format.Record{Job: "x", Kind: format.RanksRecord,
			Data: format.EncodeRanks(1, make([]format.Rank, 2))}, "1 epochs begun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := fresh()
			err := l.Restore(c.r)
			require.ErrorIs(t, err, format.ErrRecord)
			assert.ErrorContains(t, err, c.want)
			require.NoError(t, l.verify())
		})
	}
	assert.ErrorIs(t, fresh().Restore(format.Record{Job: "y", Kind: format.MarkRecord}), ErrUnknown)
	assert.ErrorIs(t, fresh().EndRestore("y"), ErrUnknown)
}

// FuzzRestore: the ledger applies any stored bytes completely or refuses them, and stays valid.
func FuzzRestore(f *testing.F) {
	ones := numberset.NewBits(format.ChunkSplits)
	ones.Fill(3, 900)
	f.Add("ranks", format.EncodeRanks(3, []format.Rank{{Fence: 1, Generation: 2}, {Fence: 1, Generation: 3, Epoch: 1}}))
	f.Add("e0/mark", format.EncodeMark(3, 77, 1500))
	f.Add("e0/c000000", format.EncodeChunk(3, ones, 0, 1024, nil))
	f.Add("e0/c000001", format.EncodeChunk(3, ones, 0, 476, nil))
	one := numberset.Runs{{From: 1, To: 2}}
	f.Add("e0/c000000", format.EncodeChunk(3, ones, 0, 1024, []format.Part{
		{Split: 0, Runs: one}, {Split: 2, Runs: numberset.Runs{{From: 0, To: 1}}}, {Split: 1000, Runs: one},
	}))
	f.Add("e1/mark", []byte{})
	plan, names := testPlan(f, 0, dataset.Options{Batch: 1, SplitBatches: 2}, "a:3000")
	epochs := []Epoch{{Job: "x", Plan: plan, Partitions: names}, threeChunks(f)}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		r, err := format.RecordOf("x", key, data)
		if err != nil {
			require.ErrorIs(t, err, format.ErrRecord)
			return
		}
		for _, sealed := range [][]byte{data, resealed(r.Kind, data)} {
			for _, epoch := range epochs {
				r.Data = sealed
				restoreAlone(t, r, epoch)
			}
		}
	})
}

// restoreAlone restores one record of any bytes in an epoch.
func restoreAlone(t *testing.T, r format.Record, epoch Epoch) {
	l := New(Config{})
	require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
	if r.Kind != format.RanksRecord {
		require.NoError(t, l.Begin(epoch, scriptStart))
	}
	err := l.Restore(r)
	if err != nil {
		require.ErrorIs(t, err, format.ErrRecord)
	} else if r.Kind == format.ChunkRecord && r.Epoch == 0 { // one state has one record
		if now := l.job("x").epoch(0).chunkData(int(r.Chunk), 0); now != nil {
			require.Equal(t, now[format.HeaderBytes:], r.Data[format.HeaderBytes:])
		}
	}
	if r.Kind == format.RanksRecord {
		require.NoError(t, l.Begin(epoch, scriptStart))
	}
	require.NoError(t, l.EndRestore("x"))
	require.NoError(t, l.verify())
}

// resealed gives foreign bytes a valid header, so that the ledger reads the bytes behind the header.
func resealed(k format.Kind, data []byte) []byte {
	const rankBytes, markBytes = 24, 16
	b := slices.Concat(make([]byte, format.HeaderBytes), data)
	b[0], b[1] = format.RecordVersion, byte(k)
	n := 0
	switch k {
	case format.RanksRecord:
		n = len(data) / rankBytes
	case format.MarkRecord:
		n = len(data) / markBytes
	case format.ChunkRecord:
		n = min(8*len(data), format.ChunkSplits)
		if len(data) < format.ChunkSplits/8 {
			n = 476 // the second chunk of the plan, with parts
		}
	}
	binary.LittleEndian.PutUint16(b[2:], uint16(n))
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[12:], crc32.Update(crc32.Checksum(b[:12], table), table, data))
	return b
}

// leasesOf lists a job's leases, by rank and number. It is empty for an unknown job.
func leasesOf(l *Ledger, id string) []Grant {
	j := l.job(id)
	if j == nil {
		return nil
	}
	var out []Grant
	for _, r := range j.ranks {
		for _, le := range r.leases {
			out = append(out, Grant{Job: id, Rank: r.number, Lease: le.Lease})
		}
	}
	return out
}

// TestAnEpochThatBeginsAgainIsWrittenAfterItsDeletion: a rank goes back to an epoch whose deletion was not flushed. No
// transaction may delete and write the same record, since etcd refuses it.
func TestAnEpochThatBeginsAgainIsWrittenAfterItsDeletion(t *testing.T) {
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	begin := func(epoch uint64) {
		plan, names := testPlan(t, epoch, dataset.Options{Batch: 1, SplitBatches: 1}, "a:4")
		require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names, Number: epoch}, scriptStart))
	}
	begin(0)
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 0, To: 4}}, scriptStart))
	assert.Len(t, l.Flush(100), 2, "the ranks and a mark")
	l.Want("x", a.Session, 1, 1, scriptStart)
	begin(1)
	begin(0)
	a, err = l.Attach("x", 0, &dataset.Token{}, scriptStart)
	require.NoError(t, err)
	require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{{From: 0, To: 2}}, scriptStart))

	deleted, stored := false, []byte(nil)
	for records := l.Flush(100); len(records) > 0; records = l.Flush(100) {
		keys := map[string]bool{}
		for _, r := range records {
			require.False(t, keys[r.Key()], "one transaction has %s twice", r.Key())
			keys[r.Key()] = true
			if r.Key() == "e0/mark" {
				deleted, stored = deleted || r.Data == nil, r.Data
			}
		}
	}
	assert.True(t, deleted, "the test needs an epoch that was forgotten")
	assert.NotNil(t, stored)
}

// TestARankThatGoesBackTakesNoOtherRankBack: a mark that goes back needs the chunks' records that it had deleted. They
// are written before it, so that a leader that dies between two transactions loses no other rank's acknowledgements.
func TestARankThatGoesBackTakesNoOtherRankBack(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 1}, "a:6000")
	for transactions := range 9 {
		store := map[string]format.Record{}
		lead := func() *Ledger {
			l := New(Config{Fence: 1})
			require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
			if ranks, stored := store["ranks"]; stored {
				require.NoError(t, l.Restore(ranks))
			}
			require.NoError(t, l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}, scriptStart))
			for key, r := range store {
				if key != "ranks" {
					require.NoError(t, l.Restore(r))
				}
			}
			require.NoError(t, l.EndRestore("x"))
			return l
		}
		flush := func(l *Ledger) (left bool) {
			records := l.Flush(1)
			for _, r := range records {
				if store[r.Key()] = r; r.Data == nil {
					delete(store, r.Key())
				}
			}
			return len(records) > 0
		}
		l := lead()
		for rank, own := range []dataset.Range{{From: 0, To: 3000}, {From: 3000, To: 5999}} {
			a, err := l.Attach("x", uint32(rank), nil, scriptStart)
			require.NoError(t, err)
			require.NoError(t, l.Acknowledge("x", a.Session, 0, []dataset.Range{own}, scriptStart))
		}
		for flush(l) {
		}
		require.Len(t, store, 3, "the ranks, the mark, and the chunk in which it is")
		none := numberset.Runs(nil).Token(digestOf("x"), 0)
		_, err := l.Attach("x", 0, &none, scriptStart)
		require.NoError(t, err)
		for range transactions {
			flush(l)
		}
		l = lead()
		token, err := l.RankToken("x", 1)
		require.NoError(t, err)
		require.Equal(t, "0:3000-5999", showToken(token), "after %d transactions", transactions)
		require.NoError(t, l.verify())
	}
}
