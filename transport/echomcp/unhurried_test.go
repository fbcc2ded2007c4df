package echomcp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUnhurriedContextsEndWithTheRequestButNotWithItsDeadline(t *testing.T) {
	plain, cancel := context.WithCancel(t.Context())
	got, stop := unhurried(plain)
	require.Equal(t, plain, got)
	stop()
	require.NoError(t, plain.Err())
	cancel()

	synctest.Test(t, func(t *testing.T) {
		request, hangUp := context.WithCancel(t.Context())
		hurried, cancel := context.WithTimeout(request, time.Second)
		defer cancel()
		first, stopFirst := unhurried(hurried)
		second, stopSecond := unhurried(hurried)
		_, has := first.Deadline()
		require.False(t, has)
		stopSecond()
		require.Error(t, second.Err())
		time.Sleep(2 * time.Second) // of the bubble's clock
		synctest.Wait()
		require.Error(t, hurried.Err())
		require.NoError(t, first.Err())
		hangUp()
		stopFirst()
		require.Error(t, first.Err())

		request, hangUp = context.WithCancel(t.Context())
		hurried, cancel = context.WithTimeout(request, time.Second)
		defer cancel()
		third, stopThird := unhurried(hurried)
		defer stopThird()
		hangUp()
		synctest.Wait()
		require.ErrorIs(t, third.Err(), context.Canceled)
	})
}
