package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type deadlineKey struct{}

var errOver = errors.New("over")

// contexts are the two that have to behave alike.
func contexts(parent context.Context, after time.Duration) map[string]struct {
	ctx context.Context
	end func()
} {
	lazy := new(Deadline)
	lazy.Begin(parent, after, errOver)
	eager, cancel := context.WithTimeoutCause(parent, after, errOver)
	return map[string]struct {
		ctx context.Context
		end func()
	}{"lazy": {lazy, lazy.End}, "eager": {eager, cancel}}
}

func TestADeadlineThatStartsItsTimerLateIsADeadline(t *testing.T) {
	errParent := errors.New("the parent's cause")
	for _, test := range []struct {
		name string
		// what is done with the context, a second before its deadline is checked
		use   func(t *testing.T, ctx context.Context)
		until string // what ends it: deadline, parent, end
		err   error
		cause error
	}{
		{name: "not looked at", until: "deadline", err: context.DeadlineExceeded, cause: errOver},
		{name: "looked at", use: func(t *testing.T, ctx context.Context) { require.NoError(t, ctx.Err()) },
			until: "deadline", err: context.DeadlineExceeded, cause: errOver},
		{name: "waited for", use: func(t *testing.T, ctx context.Context) { require.NotNil(t, ctx.Done()) },
			until: "deadline", err: context.DeadlineExceeded, cause: errOver},
		{name: "not looked at, parent ends", until: "parent", err: context.Canceled, cause: errParent},
		{name: "waited for, parent ends", use: func(t *testing.T, ctx context.Context) { require.NotNil(t, ctx.Done()) },
			until: "parent", err: context.Canceled, cause: errParent},
		{name: "not looked at, call ends", until: "end", err: context.Canceled, cause: context.Canceled},
		{name: "waited for, call ends", use: func(t *testing.T, ctx context.Context) { require.NotNil(t, ctx.Done()) },
			until: "end", err: context.Canceled, cause: context.Canceled},
	} {
		for _, which := range []string{"lazy", "eager"} {
			t.Run(test.name+", "+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancelParent := context.WithCancelCause(context.WithValue(t.Context(), deadlineKey{}, "value"))
					defer cancelParent(nil)
					began := time.Now()
					c := contexts(parent, time.Minute)[which]
					defer c.end()
					if test.use != nil {
						test.use(t, c.ctx)
					}
					deadline, ok := c.ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, began.Add(time.Minute), deadline)
					require.Equal(t, "value", c.ctx.Value(deadlineKey{}))
					child, cancelChild := context.WithCancel(context.WithValue(c.ctx, deadlineKey{}, "other"))
					defer cancelChild()
					switch test.until {
					case "deadline":
						<-time.After(time.Minute)
					case "parent":
						cancelParent(errParent)
					case "end":
						c.end()
					}
					synctest.Wait()
					// The cause is asked first: it must not depend on somebody having looked.
					require.Equal(t, test.cause, context.Cause(c.ctx))
					require.Equal(t, test.err, c.ctx.Err())
					<-c.ctx.Done()
					<-child.Done()
					require.Equal(t, test.cause, context.Cause(child))
				})
			})
		}
	}
}

func TestADeadlineNobodyLooksAtIsOverInTime(t *testing.T) {
	for _, which := range []string{"lazy", "eager"} {
		synctest.Test(t, func(t *testing.T) {
			c := contexts(t.Context(), time.Minute)[which]
			defer c.end()
			<-time.After(time.Minute)
			synctest.Wait()
			require.Equal(t, errOver, context.Cause(c.ctx))
			require.Equal(t, context.DeadlineExceeded, c.ctx.Err())
		})
	}
}

func TestAParentsEarlierDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var c Deadline
		c.Begin(parent, time.Minute, errOver)
		defer c.End()
		want, _ := parent.Deadline()
		got, ok := c.Deadline()
		require.True(t, ok)
		require.Equal(t, want, got)
		<-time.After(time.Second)
		synctest.Wait()
		require.Equal(t, context.DeadlineExceeded, c.Err())
		require.Equal(t, context.DeadlineExceeded, context.Cause(&c))
	})
}

func TestACallThatNobodyWaitsForStartsNoTimer(t *testing.T) {
	var c Deadline
	c.Begin(t.Context(), time.Minute, errOver)
	require.NoError(t, c.Err())
	require.Nil(t, c.Value(deadlineKey{}))
	_, ok := c.Deadline()
	require.True(t, ok)
	c.End()
	require.Nil(t, c.timed)
	require.Equal(t, context.Canceled, c.Err())
}
