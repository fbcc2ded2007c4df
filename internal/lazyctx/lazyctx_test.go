package lazyctx_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/lazyctx"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

var errWhy = errors.New("why")

type key struct{}

func begin(parent context.Context) *lazyctx.Context {
	c := new(lazyctx.Context)
	c.Begin(parent)
	return c
}

// watchers are the ways to notice the end of a context.
var watchers = map[string]func(ctx context.Context) (ended func() bool){
	"Done": func(ctx context.Context) func() bool {
		done := ctx.Done()
		return func() bool {
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
	},
	"Done, asked late": func(ctx context.Context) func() bool {
		return func() bool {
			select {
			case <-ctx.Done():
				return true
			default:
				return false
			}
		}
	},
	"Err": func(ctx context.Context) func() bool { return func() bool { return ctx.Err() != nil } },
	"derive": func(ctx context.Context) func() bool {
		derived, cancel := context.WithCancel(ctx)
		context.AfterFunc(derived, cancel)
		return func() bool { return derived.Err() != nil }
	},
	"AfterFunc": func(ctx context.Context) func() bool {
		called := make(chan struct{})
		context.AfterFunc(ctx, func() { close(called) })
		return func() bool {
			select {
			case <-called:
				return true
			default:
				return false
			}
		}
	},
}

func TestEndsAreNoticed(t *testing.T) {
	for name, end := range map[string]struct {
		end   func(c *lazyctx.Context, cancelParent context.CancelCauseFunc)
		err   error
		cause error
	}{
		"End":                 {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.End() }, context.Canceled, context.Canceled},
		"Cancel":              {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Cancel(errWhy) }, context.Canceled, errWhy},
		"Cancel without one":  {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Cancel(nil) }, context.Canceled, context.Canceled},
		"the parent's":        {func(_ *lazyctx.Context, cancel context.CancelCauseFunc) { cancel(errWhy) }, context.Canceled, errWhy},
		"the parent's, first": {func(c *lazyctx.Context, cancel context.CancelCauseFunc) { cancel(errWhy); c.Cancel(errors.New("late")) }, context.Canceled, errWhy},
		"the first of two":    {func(c *lazyctx.Context, _ context.CancelCauseFunc) { c.Cancel(errWhy); c.End() }, context.Canceled, errWhy},
		"a deadline": {func(c *lazyctx.Context, _ context.CancelCauseFunc) {
			late, cancel := context.WithDeadlineCause(c.Parent(), time.Unix(0, 0), errWhy)
			cancel()
			c.EndAs(late)
		}, context.DeadlineExceeded, errWhy},
	} {
		for watcher, watch := range watchers {
			t.Run(name+", "+watcher, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
					defer cancel(nil)
					c := begin(parent)
					ended := watch(c)
					synctest.Wait()
					require.False(t, ended())
					require.NoError(t, c.Err())
					end.end(c, cancel)
					synctest.Wait()
					require.True(t, ended())
					require.Equal(t, end.err, c.Err())
					require.Equal(t, end.cause, context.Cause(c))
					require.Equal(t, "value", c.Value(key{}))
				})
			})
		}
	}
}

func TestStoppedFunctionsAreNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := begin(t.Context())
		stop := context.AfterFunc(c, func() { t.Error("called") })
		require.True(t, stop())
		require.False(t, stop())
		c.End()
		synctest.Wait()
	})
}

func TestTheEndIsReportedOnce(t *testing.T) {
	c := begin(t.Context())
	require.True(t, c.End())
	require.False(t, c.End())
	c.Cancel(errWhy)
	require.Equal(t, context.Canceled, context.Cause(c))
}

// The parent must not keep what has ended.
func TestTheParentIsNoLongerWatchedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := begin(t.Context())
		c := begin(parent)
		c.Done()
		c.End()
		parent.End()
		synctest.Wait()
		require.Equal(t, context.Canceled, c.Err())
	})
}

func TestConcurrentUse(t *testing.T) {
	for range 100 {
		parent, cancel := context.WithCancelCause(t.Context())
		c := begin(parent)
		var all sync.WaitGroup
		for _, f := range []func(){
			func() { <-c.Done() },
			func() { c.End() },
			func() { c.Cancel(errWhy) },
			func() { cancel(errWhy) },
			func() { _ = c.Err(); c.Value(key{}) },
			func() { context.AfterFunc(c, func() {})() },
			func() {
				derived, cancel := context.WithCancel(c)
				defer cancel()
				<-derived.Done()
			},
		} {
			all.Go(f)
		}
		all.Wait()
		require.Error(t, c.Err())
	}
}

func TestAnUnwatchedContextAllocatesNothing(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	contexts := make([]lazyctx.Context, 2000)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		c := &contexts[0]
		contexts = contexts[1:]
		c.Begin(parent)
		_ = c.Err()
		c.End()
		c.Cancel(errWhy) // too late
	}))
}
