package boltfleet_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
)

func TestFullFilesRefuseWhatIsNewUntilThereIsSpace(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "fleet.db"), &boltfleet.Options{MaxBytes: 4 << 20})
	n := 0
	var err error
	for ; err == nil; n++ {
		_, err = e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(n), Data: make([]byte, 20_000), TTL: time.Hour})
	}
	require.ErrorContains(t, err, "boltfleet: the file is full")
	n--
	require.Greater(t, n, 50)
	keep := fleet.Keep{Entries: 9, Bytes: 1 << 20, TTL: time.Hour}
	require.ErrorContains(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: 1, Data: make([]byte, 200_000)}, keep), "full")
	count, err := e.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.Equal(t, n, count)
	r, err := e.Get(t.Context(), "set", "0")
	require.NoError(t, err)
	r.Data = r.Data[:100]
	_, err = e.Update(t.Context(), "set", r)
	require.NoError(t, err, "what does not grow is written")
	for i := range n / 2 {
		require.NoError(t, e.Delete(t.Context(), "set", fmt.Sprint(i), 0))
	}
	require.NoError(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: 1, Data: make([]byte, 20_000)}, keep))
}

// damage changes a part of a file.
func damage(t *testing.T, path, old, new string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(new)), 0o600))
}

func TestDamagedRecordsAreReportedAndLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	e, err := boltfleet.Open(path, nil)
	require.NoError(t, err)
	for _, key := range []string{"a", "b", "c"} {
		_, err = e.Create(t.Context(), "set", fleet.Record{Key: key, Group: "g", Data: []byte("data of " + key), TTL: time.Hour, Due: fleet.AtOnce})
		require.NoError(t, err)
	}
	keep := fleet.Keep{Entries: 9, Bytes: 999, TTL: time.Hour}
	for i := range uint64(3) {
		require.NoError(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: i + 1, Data: fmt.Append(nil, "entry ", i+1)}, keep))
	}
	require.NoError(t, e.Close())
	damage(t, path, "data of b", "date of b")
	damage(t, path, "entry 2", "Entry 2")

	var report strings.Builder
	e = open(t, path, &boltfleet.Options{Logger: slog.New(slog.NewTextHandler(&report, nil))})
	_, err = e.Get(t.Context(), "set", "b")
	require.ErrorIs(t, err, fleet.ErrNotFound)
	require.Contains(t, report.String(), `msg="boltfleet: a record is damaged, and left out" set=set key=b`)
	list, err := e.List(t.Context(), "set", "g", "", 9)
	require.NoError(t, err)
	require.Len(t, list, 2)
	due, err := e.Due(t.Context(), "set", 9)
	require.NoError(t, err)
	require.Len(t, due, 2)
	entries, err := e.After(t.Context(), "g", "l", 0, 9)
	require.NoError(t, err)
	require.Equal(t, []fleet.Entry{{Seq: 1, Data: []byte("entry 1")}, {Seq: 3, Data: []byte("entry 3")}}, entries)
	require.Contains(t, report.String(), `msg="boltfleet: an entry of a log is damaged, and left out" group=g log=l number=2`)

	_, err = e.Create(t.Context(), "set", fleet.Record{Key: "b", Data: []byte("new"), TTL: time.Hour})
	require.NoError(t, err, "its place is free")
	for group, want := range map[string]int{"": 3, "g": 2} {
		n, err := e.Count(t.Context(), "set", group)
		require.NoError(t, err)
		require.Equal(t, want, n, group)
	}
	require.NoError(t, e.Delete(t.Context(), "set", "b", 0))
	n, err := e.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// Whatever is in the place of the pages, methods return, and the process lives.
func TestDamagedPagesAreErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	e, err := boltfleet.Open(path, nil)
	require.NoError(t, err)
	for i := range 200 {
		_, err = e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(i), Group: "g", Data: make([]byte, 500), TTL: time.Hour})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	failed := 0
	for page := 2; page < 60; page++ {
		path := filepath.Join(t.TempDir(), "fleet.db")
		text := bytes.Clone(whole)
		for i := range 4096 {
			text[page*4096+i] ^= byte(i*7 + page)
		}
		require.NoError(t, os.WriteFile(path, text, 0o600))
		e, err := boltfleet.Open(path, &boltfleet.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			require.ErrorContains(t, err, "boltfleet: ")
			failed++
			continue
		}
		for i := range 200 {
			if r, err := e.Get(t.Context(), "set", fmt.Sprint(i)); err == nil {
				require.Equal(t, make([]byte, 500), r.Data, "what is returned is right")
			} else {
				failed++
			}
		}
		_, _ = e.List(t.Context(), "set", "g", "", 999)
		_, _ = e.Count(t.Context(), "set", "g")
		_, _ = e.Create(t.Context(), "set", fleet.Record{Key: "new", TTL: time.Hour})
		_ = e.Delete(t.Context(), "set", "7", 0)
		_ = e.Close()
	}
	require.NotZero(t, failed)
}

func TestOpenReportsFilesThatItCannotUse(t *testing.T) {
	_, err := boltfleet.Open(t.TempDir(), nil)
	require.ErrorContains(t, err, "boltfleet: ")

	path := filepath.Join(t.TempDir(), "fleet.db")
	e, err := boltfleet.Open(path, nil)
	require.NoError(t, err)
	_, err = boltfleet.Open(path, nil)
	require.EqualError(t, err, "boltfleet: another process has "+path+" open")
	for i := range 50 {
		_, err = e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(i), Data: make([]byte, 3000), TTL: time.Hour})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, size := range []int{1, 100, 4096, 9000, 20_000, 100_000} {
		path := filepath.Join(t.TempDir(), "fleet.db")
		require.NoError(t, os.WriteFile(path, whole[:size], 0o600))
		_, err := boltfleet.Open(path, nil)
		require.ErrorContains(t, err, "boltfleet: ", size)
	}

	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("2")) }))
	require.NoError(t, db.Close())
	_, err = boltfleet.Open(path, nil)
	require.EqualError(t, err, `boltfleet: `+path+`: the file has format "2"; this version of the program reads "1"`)
}

// After a restart on a machine whose clock was set back, time goes on from where it was.
func TestTimeDoesNotGoBackwards(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	e, err := boltfleet.Open(path, nil)
	require.NoError(t, err)
	_, err = e.Create(t.Context(), "set", fleet.Record{Key: "k", TTL: time.Hour})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	synctest.Test(t, func(t *testing.T) { // it is the year 2000
		e, err := boltfleet.Open(path, nil)
		require.NoError(t, err)
		defer e.Close()
		r, err := e.Get(t.Context(), "set", "k")
		require.NoError(t, err)
		require.LessOrEqual(t, r.TTL, time.Hour)
		require.Greater(t, r.TTL, 30*time.Minute)
		time.Sleep(31 * time.Minute)
		r, err = e.Get(t.Context(), "set", "k")
		require.NoError(t, err)
		require.LessOrEqual(t, r.TTL, 29*time.Minute)
		time.Sleep(30 * time.Minute)
		_, err = e.Get(t.Context(), "set", "k")
		require.ErrorIs(t, err, fleet.ErrNotFound)
	})
}

// What has expired is removed from the file, also if nobody writes.
func TestWhatHasExpiredIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	synctest.Test(t, func(t *testing.T) {
		e, err := boltfleet.Open(path, nil)
		require.NoError(t, err)
		keep := fleet.Keep{Entries: 9, Bytes: 999, TTL: time.Minute}
		for i := range 500 {
			_, err := e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(i), Group: "g", TTL: time.Minute, Due: time.Hour})
			require.NoError(t, err)
			require.NoError(t, e.Append(t.Context(), "g", fmt.Sprint(i), fleet.Entry{Seq: 1}, keep))
		}
		time.Sleep(59 * time.Second)
		require.NoError(t, e.Append(t.Context(), "g", "7", fleet.Entry{Seq: 2}, keep))
		time.Sleep(30 * time.Second)
		n, err := e.Last(t.Context(), "g", "7")
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		time.Sleep(time.Minute)
		require.NoError(t, e.Close())
	})
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			if string(name) != "meta" {
				require.Zero(t, b.Stats().KeyN, "%s", name)
			}
			return nil
		})
	}))
}
