package boltfleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) {
	if asServer() {
		os.Exit(0)
	}
	testkit.VerifyTestMain(m)
}

func open(t testing.TB, path string, opts *boltfleet.Options) *fleet.Local {
	t.Helper()
	e, err := boltfleet.Open(path, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestEngine(t *testing.T) {
	fleettest.Run(t, func(t testing.TB) fleettest.Store {
		e := open(t, filepath.Join(t.TempDir(), "fleet.db"), nil)
		return fleettest.Store{Open: func(t testing.TB) fleet.Engine { return e.Open() }}
	})
}

func TestFullFilesRefuseWhatIsNewUntilThereIsSpace(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "fleet.db"), &boltfleet.Options{MaxBytes: 4 << 20})
	create := func(n int) error {
		_, err := e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(n), Data: make([]byte, 20_000), TTL: time.Hour})
		return err
	}
	n := 0
	for create(n) == nil {
		n++
	}
	require.Greater(t, n, 50)
	require.ErrorContains(t, create(n), "fleet: the store is full")
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
	require.NoError(t, create(n))
}

func TestOpenReportsFilesThatItCannotUse(t *testing.T) {
	_, err := boltfleet.Open(t.TempDir(), nil)
	require.ErrorContains(t, err, "boltfleet: ")

	path := filepath.Join(t.TempDir(), "fleet.db")
	e, err := boltfleet.Open(path, nil)
	require.NoError(t, err)
	_, err = boltfleet.Open(path, nil)
	require.EqualError(t, err, "boltfleet: another process has "+path+" open")
	require.NoError(t, e.Close())

	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("mcpkit fleet 3"))
		return err
	}))
	require.NoError(t, db.Close())
	_, err = boltfleet.Open(path, nil)
	require.EqualError(t, err, "boltfleet: "+path+": the file has another format than this version of the program")
}

func TestURLsOpenFiles(t *testing.T) {
	e, err := fleet.Open(t.Context(), "bolt://"+filepath.ToSlash(filepath.Join(t.TempDir(), "fleet.db")))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	for _, wrong := range []string{"bolt:", "bolt://host/file", "bolt:///file?x=1"} {
		_, err := fleet.Open(t.Context(), wrong)
		require.ErrorContains(t, err, "write bolt:///path/of/the/file")
	}
}
