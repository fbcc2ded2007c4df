package client

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestAnInboxKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var got []int
		first := make(chan struct{})
		require.True(t, b.push(log, func() { <-first; got = append(got, 0) }, 1))
		synctest.Wait()
		for i := 1; i < 5; i++ {
			require.True(t, b.push(log, func() {
				got = append(got, i)
				switch i {
				case 2:
					panic("oops")
				case 3:
					runtime.Goexit()
				}
			}, 1))
		}
		require.Empty(t, got)
		close(first)
		b.close(t.Context())
		require.Equal(t, []int{0, 1, 2, 3, 4}, got)
		require.Contains(t, out.String(), `msg="client: a handler panicked" panic=oops`)
		require.True(t, b.push(log, func() { t.Error("nothing is begun after the call") }, 1))
		synctest.Wait()
	})
}

func TestAnInboxIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b inbox
		gate := make(chan struct{})
		require.True(t, b.push(slog.Default(), func() { <-gate }, 1))
		synctest.Wait()
		for range maxInbox {
			require.True(t, b.push(slog.Default(), func() {}, 1))
		}
		require.False(t, b.push(slog.Default(), func() {}, 1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.close(ctx) // returns although a handler hangs
		close(gate)
	})
}
