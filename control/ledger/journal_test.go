package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
			require.NoError(t, stored.Restore(Record{Job: j.ID, Kind: RanksRecord, Data: w.store[j.ID+"/ranks"]}))
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
					r, err := RecordOf(j.ID, k, data)
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
	assert.Equal(t, Record{Job: "x", Kind: ChunkRecord, Chunk: 1}, out[1])
}

// TestAnAcknowledgedNumberIsPendingUntilItIsFlushed: an acknowledgement inside a split is a change of the split's
// chunk, and a leader that has only the flushed records knows the acknowledgement. The chunk's record holds no trace of
// a split that is finished, or that a token has taken back.
func TestAnAcknowledgedNumberIsPendingUntilItIsFlushed(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 10}, "a:40")
	token := set{{From: 12, To: 14}}.token(digestOf("x"), 0)
	epoch := Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names, Resume: &token}
	store := map[string]Record{}
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
	back := set{{From: 12, To: 14}}.token(digestOf("x"), 0)
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
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 1024}, fmt.Sprintf("a:%d", 2*MaxRuns))
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x"}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}, scriptStart))
	a, err := l.Attach("x", 0, nil, scriptStart)
	require.NoError(t, err)
	var runs []dataset.Range
	for i := range uint64(MaxRuns) {
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
	token := set{{From: 0, To: 1}, {From: 2, To: 3}}.token(digestOf("x"), 0)
	_, err = l.Attach("x", 0, &token, scriptStart)
	require.ErrorIs(t, err, ErrArgument)
	none := set(nil).token(digestOf("x"), 0)
	a, err = l.Attach("x", 0, &none, scriptStart)
	require.NoError(t, err)
	require.NoError(t, l.Acknowledge("x", a.Session, 0, more, scriptStart), "the token has taken the runs back")
}

func TestRecordsRefuse(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1, SplitBatches: 2}, "a:3000")
	fresh := func() *Ledger {
		l := New(Config{})
		require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
		require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
		return l
	}
	ones := newBitset(ChunkSplits)
	ones.fill(0, ChunkSplits)
	some := newBitset(ChunkSplits)
	some.fill(0, 476)
	full, short := encodeChunk(1, ones, 0, 1024, nil), encodeChunk(1, some, 0, 476, nil)
	require.NoError(t, fresh().Restore(Record{Job: "x", Kind: ChunkRecord, Data: full}))
	require.NoError(t, fresh().Restore(Record{Job: "x", Kind: ChunkRecord, Chunk: 1, Data: short}))
	require.NoError(t, fresh().Restore(Record{Job: "x", Kind: MarkRecord, Data: encodeMark(1, 1500, 1500)}))
	unfinished := func(parts ...part) []byte { return encodeChunk(1, newBitset(ChunkSplits), 0, 476, parts) }
	runs := func(numbers ...uint64) (s set) {
		for i := 0; i < len(numbers); i += 2 {
			s = append(s, dataset.Range{From: numbers[i], To: numbers[i+1]})
		}
		return s
	}
	one := unfinished(part{3, runs(0, 1)})
	require.NoError(t, fresh().Restore(Record{Job: "x", Kind: ChunkRecord, Chunk: 1, Data: one}))
	const notTheirs = "bytes do not describe its unfinished splits"
	above := bytes.Clone(short)
	above[len(above)-1] = 0xff
	above = seal(ChunkRecord, 476, 1, above[headerBytes:])
	for _, c := range []struct {
		name string
		r    Record
		want string
	}{
		{"a cut header", Record{Data: full[:15], Kind: ChunkRecord}, "the header alone has 16"},
		{"a cut body", Record{Data: full[:100], Kind: ChunkRecord}, "changed or cut"},
		{"a changed bit", Record{Data: append(bytes.Clone(full[:100]), append([]byte{full[100] ^ 1}, full[101:]...)...),
			Kind: ChunkRecord}, "changed or cut"},
		{"another kind", Record{Data: encodeMark(1, 0, 1500), Kind: ChunkRecord}, "mark under the key of a chunk"},
		{"another size", Record{Data: short, Kind: ChunkRecord}, "chunk of 476 splits, the plan has 1024 there"},
		{"beyond the plan", Record{Data: short, Kind: ChunkRecord, Chunk: 2}, "the plan has 1500 splits"},
		{"bits above the last", Record{Data: above, Kind: ChunkRecord, Chunk: 1}, "has bits above them"},
		{"an unfinished split that is delivered", Record{Data: encodeChunk(1, some, 0, 476, []part{{3, runs(0, 1)}}),
			Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"unfinished splits that do not ascend", Record{Data: unfinished(part{3, runs(0, 1)}, part{3, runs(0, 1)}),
			Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"an unfinished split beyond the chunk", Record{Data: unfinished(part{476, runs(0, 1)}),
			Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"an unfinished split without runs", Record{Data: unfinished(part{3, nil}), Kind: ChunkRecord, Chunk: 1},
			notTheirs},
		{"runs that touch", Record{Data: unfinished(part{3, runs(0, 1, 1, 2)}), Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"runs that descend", Record{Data: unfinished(part{3, runs(1, 2, 0, 1)}), Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"an empty run", Record{Data: unfinished(part{3, runs(1, 1)}), Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"a cut run", Record{Data: seal(ChunkRecord, 476, 1, one[headerBytes:len(one)-1]), Kind: ChunkRecord, Chunk: 1},
			notTheirs},
		{"a number in more bytes than it needs", Record{Data: seal(ChunkRecord, 476, 1,
			append(bytes.Clone(one[headerBytes:len(one)-1]), 0x81, 0)), Kind: ChunkRecord, Chunk: 1}, notTheirs},
		{"a run beyond its split", Record{Data: unfinished(part{3, runs(0, 3)}), Kind: ChunkRecord, Chunk: 1},
			"numbers [0, 3) of split 1027, which is unfinished and owes 2"},
		{"a whole split as an unfinished one", Record{Data: unfinished(part{3, runs(0, 2)}), Kind: ChunkRecord, Chunk: 1},
			"numbers [0, 2) of split 1027, which is unfinished and owes 2"},
		{"a mark of another plan", Record{Data: encodeMark(1, 10, 1400), Kind: MarkRecord},
			"mark 10 of 1400 splits, the plan has 1500"},
		{"a mark beyond", Record{Data: encodeMark(1, 1501, 1500), Kind: MarkRecord}, "mark 1501 of 1500"},
		{"a later version", Record{Data: later(encodeMark(1, 10, 1500)), Kind: MarkRecord},
			"version 3, this build reads 2"},
		{"ranks after an epoch", Record{Data: encodeRanks(1, make([]rankEntry, 2)), Kind: RanksRecord},
			"1 epochs begun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.Job = "x"
			l := fresh()
			err := l.Restore(c.r)
			require.ErrorIs(t, err, ErrRecord)
			assert.ErrorContains(t, err, c.want)
			require.NoError(t, l.verify())
		})
	}
	assert.ErrorIs(t, fresh().Restore(Record{Job: "y", Kind: MarkRecord}), ErrUnknown)
	assert.ErrorIs(t, fresh().EndRestore("y"), ErrUnknown)
}

// TestPartsHaveAsManyNumbersAsASplitHasFragments reads a chunk whose split has numbers up to the limit, and beyond.
func TestPartsHaveAsManyNumbersAsASplitHasFragments(t *testing.T) {
	for _, run := range []dataset.Range{
		{From: 0, To: dataset.MaxSplitFragments}, {From: dataset.MaxSplitFragments - 1, To: dataset.MaxSplitFragments},
	} {
		parts := []part{{0, set{run}}}
		_, got, err := decodeChunk(encodeChunk(1, newBitset(ChunkSplits), 0, 1, parts), 1)
		require.NoError(t, err)
		assert.Equal(t, parts, got)
		for _, beyond := range []dataset.Range{{From: run.From, To: run.To + 1}, {From: run.To, To: run.To + 1}} {
			parts := []part{{0, set{beyond}}}
			_, _, err = decodeChunk(encodeChunk(1, newBitset(ChunkSplits), 0, 1, parts), 1)
			require.ErrorIs(t, err, ErrRecord, "%v", beyond)
		}
	}
}

func later(b []byte) []byte {
	b = bytes.Clone(b)
	b[0] = RecordVersion + 1
	return seal2(b)
}

// seal2 writes a record's checksum again.
func seal2(b []byte) []byte {
	sum := checksum(b)
	b[12], b[13], b[14], b[15] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	return b
}

func TestKeys(t *testing.T) {
	for _, r := range []Record{
		{Job: "x", Kind: RanksRecord}, {Job: "x", Kind: MarkRecord, Epoch: 12}, {Job: "x", Kind: ChunkRecord, Epoch: 3,
			Chunk: 0xabcdef}, {Job: "x", Kind: ChunkRecord, Chunk: 0x1fffff},
	} {
		got, err := RecordOf("x", r.Key(), nil)
		require.NoError(t, err)
		assert.Equal(t, r, got)
	}
	for _, key := range []string{"", "rank", "e/mark", "e1", "e1/", "e01/mark", "e1/c1", "e1/c00000g", "e1/c-00001",
		"e-1/mark", "e1/c100000000", "e1/mark/"} {
		_, err := RecordOf("x", key, nil)
		assert.ErrorIs(t, err, ErrRecord, key)
	}
}

// FuzzRestore: the ledger applies any stored bytes completely or refuses them, and stays valid.
func FuzzRestore(f *testing.F) {
	ones := newBitset(ChunkSplits)
	ones.fill(3, 900)
	f.Add("ranks", encodeRanks(3, []rankEntry{{1, 2, 0}, {1, 3, 1}}))
	f.Add("e0/mark", encodeMark(3, 77, 1500))
	f.Add("e0/c000000", encodeChunk(3, ones, 0, 1024, nil))
	f.Add("e0/c000001", encodeChunk(3, ones, 0, 476, nil))
	one := set{{From: 1, To: 2}}
	f.Add("e0/c000000", encodeChunk(3, ones, 0, 1024, []part{{0, one}, {2, set{{From: 0, To: 1}}}, {1000, one}}))
	f.Add("e1/mark", []byte{})
	plan, names := testPlan(f, 0, dataset.Options{Batch: 1, SplitBatches: 2}, "a:3000")
	epochs := []Epoch{{Job: "x", Plan: plan, Partitions: names}, threeChunks(f)}
	f.Fuzz(func(t *testing.T, key string, data []byte) {
		r, err := RecordOf("x", key, data)
		if err != nil {
			require.ErrorIs(t, err, ErrRecord)
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
func restoreAlone(t *testing.T, r Record, epoch Epoch) {
	l := New(Config{})
	require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 2}))
	if r.Kind != RanksRecord {
		require.NoError(t, l.Begin(epoch, scriptStart))
	}
	err := l.Restore(r)
	if err != nil {
		require.ErrorIs(t, err, ErrRecord)
	} else if r.Kind == ChunkRecord && r.Epoch == 0 { // one state has one record
		if now := l.job("x").epoch(0).chunkData(int(r.Chunk), 0); now != nil {
			require.Equal(t, now[headerBytes:], r.Data[headerBytes:])
		}
	}
	if r.Kind == RanksRecord {
		require.NoError(t, l.Begin(epoch, scriptStart))
	}
	require.NoError(t, l.EndRestore("x"))
	require.NoError(t, l.verify())
}

// resealed gives foreign bytes a valid header, so that the ledger reads the bytes behind the header.
func resealed(k Kind, data []byte) []byte {
	b := slices.Concat(make([]byte, headerBytes), data)
	b[0], b[1] = RecordVersion, byte(k)
	n := 0
	switch k {
	case RanksRecord:
		n = len(data) / rankBytes
	case MarkRecord:
		n = len(data) / markBytes
	case ChunkRecord:
		n = min(8*len(data), ChunkSplits)
		if len(data) < ChunkSplits/8 {
			n = 476 // the second chunk of the plan, with parts
		}
	}
	b[2], b[3] = byte(n), byte(n>>8)
	return seal2(b)
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
		store := map[string]Record{}
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
		none := set(nil).token(digestOf("x"), 0)
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
