package dpop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// replica returns the view of a replica. Nothing is sealed.
func replica(t *testing.T, engine fleet.Engine) *fleet.Fleet {
	t.Helper()
	f := fleet.New(engine, fleet.Options{
		Seal:   func(_ string, plain []byte) []byte { return bytes.Clone(plain) },
		Open:   func(_ string, sealed []byte) ([]byte, error) { return bytes.Clone(sealed), nil },
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, f.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// fleetVerifiers returns the verifiers of n replicas.
func fleetVerifiers(t *testing.T, n int) (all []*Verifier, engine *fleet.Local) {
	t.Helper()
	engine = fleet.NewMemory(fleet.MemoryOptions{})
	t.Cleanup(func() { _ = engine.Close() })
	for range n {
		all = append(all, fleetVerifier(t, engine.Open()))
	}
	return all, engine
}

func fleetVerifier(t *testing.T, engine fleet.Engine) *Verifier {
	t.Helper()
	f, r := replica(t, engine), NewReplays(MaxReplays)
	r.Fleet = func() *fleet.Fleet { return f }
	return NewVerifier(r)
}

// newProof returns a proof that is made now.
func newProof(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	return proofBy(t, key, object{"iat": time.Now().Unix()})
}

func TestAProofIsAcceptedByOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, engine := fleetVerifiers(t, 3)
		key := newEC(t, elliptic.P256())
		text := newProof(t, key)
		_, err := verify(t, all[1], text, token)
		require.NoError(t, err)
		for _, v := range all {
			_, err = verify(t, v, text, token)
			require.EqualError(t, err, "dpop: the proof was used before")
		}
		another := newProof(t, key)
		_, err = verify(t, all[0], another, token)
		require.NoError(t, err)

		count := func() int {
			n, err := engine.Count(t.Context(), "proofs", "")
			require.NoError(t, err)
			return n
		}
		time.Sleep(maxAge)
		require.Equal(t, 2, count(), "for as long as they are valid")
		time.Sleep(2 * time.Minute)
		require.Zero(t, count())
	})
}

// noCreate is an engine that cannot be reached.
type noCreate struct{ *fleet.Local }

func (noCreate) Create(context.Context, string, fleet.Record) (uint64, error) {
	return 0, errors.New("connection refused")
}

func TestProofsAreRejectedWithoutTheEngine(t *testing.T) {
	v := fleetVerifier(t, noCreate{fleet.NewMemory(fleet.MemoryOptions{})})
	_, err := verify(t, v, newProof(t, newEC(t, elliptic.P256())), token)
	var away *fleet.UnavailableError
	require.ErrorAs(t, err, &away)
	var bad *ProofError
	require.NotErrorAs(t, err, &bad, "the proof is not to blame")
}
