package main

import (
	"cmp"
	"flag"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var soak = flag.Duration("soak", 0, "kill replicas for this time; by default for a few seconds")

func TestMain(m *testing.M) {
	if os.Getenv(envReplica) != "" { // the test program is the replicas, too
		runReplica()
		return
	}
	if os.Getenv(envListen) != "" { // and those that listen to them
		log.Fatal(listen())
	}
	os.Exit(m.Run())
}

// TestNoClientNoticesThatReplicasAreKilled kills one replica after the other while clients of all
// versions ask, answer, order and listen.
func TestNoClientNoticesThatReplicasAreKilled(t *testing.T) {
	needRedis(t)
	s, err := open(t.Context(), options{replicas: 3, address: "127.0.0.1:0"})
	require.NoError(t, err)
	defer s.Close()
	r, err := chaos(t.Context(), s, cmp.Or(*soak, 6*time.Second), 2, 400*time.Millisecond)
	t.Log(r)
	require.NoError(t, err)
	require.Positive(t, r.Kills)
	require.Positive(t, r.Lost, "replicas are killed while they have work")
	require.Positive(t, r.Cut)
	require.Positive(t, r.Changes)
	require.Greater(t, r.Calls, 50)
	require.Positive(t, r.Old)
	require.Positive(t, r.Next, "both versions of the program serve")
	require.Positive(t, r.Tasks)
}

func needRedis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("install redis-server")
	}
}

// TestAnAddressThatIsTakenIsAnError opens a second shop at the address of a first one.
func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	_, err := open(t.Context(), options{replicas: 1, address: taken.Listener.Addr().String()})
	require.ErrorContains(t, err, "address already in use")
}

// TestTheReportTellsWhatMustNotHappen checks the check.
func TestTheReportTellsWhatMustNotHappen(t *testing.T) {
	require.NoError(t, (&report{Calls: 10, InFlight: 3, Lost: 5, Tasks: 2, Continued: 1, GivenUp: 1}).err())
	for name, r := range map[string]*report{
		"failed": {Failed: []string{"x"}}, "twice": {Duplicates: 1}, "missing": {Missing: 1}, "deaf": {Deaf: 1},
		"lost task": {LostTasks: 1}, "effect of a task twice": {Twice: 1}, "effect of a task missing": {Undone: 1},
	} {
		require.ErrorContains(t, r.err(), "clients noticed", name)
	}
}
