package oauthclient

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerifiersAreWiped(t *testing.T) {
	lost := errors.New("lost")
	for _, want := range []error{nil, lost} {
		var kept []byte
		err := withVerifier(func(verifier []byte) error {
			require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, string(verifier))
			kept = verifier
			return want
		})
		require.Equal(t, want, err)
		require.Equal(t, make([]byte, 43), kept)
	}
	require.Panics(t, func() {
		_ = withVerifier(func([]byte) error { panic("at the disco") })
	})
}

func TestBodiesAreWipedWhenTheyWereSent(t *testing.T) {
	p := newPassing([][]byte{[]byte("code=1&code_verifier="), []byte("secret")})
	all := p.all
	b, err := io.ReadAll(p)
	require.NoError(t, err)
	require.Equal(t, "code=1&code_verifier=secret", string(b))
	require.NoError(t, p.Close())
	require.Equal(t, make([]byte, len(b)), all)
	_, err = p.Read(b)
	require.Equal(t, io.EOF, err)

	p = newPassing([][]byte{[]byte("secret")})
	require.NoError(t, p.Close())
	b, err = io.ReadAll(p)
	require.NoError(t, err)
	require.Empty(t, b, "what is closed is not read any more")
}
