package events_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestWhatGoesWrong(t *testing.T) {
	row(t, "what has expired is gone", func(t *testing.T, o *office) {
		p := o.as(ann)
		for i := range 100 {
			p.result("events/subscribe", hook(fmt.Sprintf(`"ttlMs":60000,"arguments":{"box":"%d"},`, i)))
		}
		time.Sleep(5 * time.Minute)
		p.result("events/subscribe", hook(""))
	})
	row(t, "one that is too large", func(t *testing.T, o *office) {
		large := fmt.Sprintf(`"arguments":{"box":"%0*d"},`, 64<<10, 0)
		require.Equal(t, `-32013 {"limit":"subscription_bytes","max":65536}`, o.as(ann).fails("events/subscribe", hook(large)))
	})
	row(t, "a method goes on for a webhook", func(t *testing.T, o *office) {
		o.as(ann).result("events/subscribe", strings.Replace(hook(""), "mail_arrived", "knocked", 1))
		o.hooks.take()
		time.Sleep(30 * time.Minute)
		select {
		case o.inbox.knocks <- mail{ID: "1"}:
		case <-time.After(time.Minute):
		}
		synctest.Wait()
		require.Len(t, o.hooks.take(), 1)

		o.as(ann).result("events/subscribe", strings.Replace(hook(""), "mail_arrived", "knocked", 1))
		o.hooks.answer = func(*http.Request, string) (int, string) { return 503, "" }
		o.inbox.knocks <- mail{ID: "2"}
		time.Sleep(50 * time.Minute) // long after it was suspended
		select {
		case o.inbox.knocks <- mail{ID: "3"}:
		case <-time.After(time.Minute):
			require.Fail(t, "the method does not run")
		}
	})
	t.Run("the store fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &flaky{Engine: fleet.NewMemory(fleet.MemoryOptions{})}
			o := open(t, e)
			o.as(ann).result("events/subscribe", hook(""))
			o.hooks.take()
			e.down.Store(true)
			o.emit("1", "2")
			time.Sleep(10 * time.Second)
			e.down.Store(false)
			time.Sleep(time.Minute)
			require.Len(t, o.hooks.take(), 2)
		})
	})
	t.Run("a restart after a burst", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := open(t, nil)
			for i := range 3000 {
				a.emit(strconv.Itoa(i))
			}
			cursor := member(t, a.as(nil).result("events/poll", mails), "cursor")
			require.NoError(t, a.srv.Close())
			time.Sleep(time.Second)
			b := open(t, nil)
			for i := range 2500 {
				b.emit(strconv.Itoa(i))
			}
			require.Equal(t, "true", member(t, b.as(nil).result("events/poll", `{"name":"mail_arrived","cursor":`+cursor+`}`), "truncated"))
			cursor = member(t, b.as(nil).result("events/poll", mails), "cursor")
			b.emit("last")
			r := b.as(nil).result("events/poll", `{"name":"mail_arrived","cursor":`+cursor+`,"maxAgeMs":9007199254740991}`)
			require.Equal(t, "false", member(t, r, "truncated"))
			require.Contains(t, r, `"last"`, "the longest age that JavaScript can say")
		})
	})
	revoker := new(events.Revoker)
	for method, want := range map[string]string{"events/subscribe": "-32012", "events/stream": "<nil>"} {
		t.Run("revoked during "+method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &flaky{Engine: fleet.NewMemory(fleet.MemoryOptions{})}
				o := open(t, e, revoker)
				o.emit("0")
				e.after = method == "events/stream"
				e.before = func() { require.NoError(t, revoker.Revoke(t.Context(), ann)) }
				resp := o.as(ann).rpc(t.Context(), method, hook(""))
				require.Contains(t, fmt.Sprint(resp.Error), want)
				synctest.Wait()
				o.hooks.take()
				o.emit("1")
				time.Sleep(time.Minute)
				require.NotContains(t, strings.Join(o.hooks.take(), ""), "eventId")
			})
		})
	}
	row(t, "an occurrence that cannot be kept", func(t *testing.T, o *office) {
		q := `{"name":"knocked"`
		cursor := member(t, o.as(ann).result("events/poll", q+`}`), "cursor")
		o.inbox.knocks <- mail{ID: "1", From: strings.Repeat("x", fleet.MaxData)}
		o.inbox.knocks <- mail{ID: "2"}
		synctest.Wait()
		require.Contains(t, o.as(ann).result("events/poll", q+`,"cursor":`+cursor+`}`), `"eventId":"2"`)
	})
	t.Run("the identity of a pointer", func(t *testing.T) {
		typ := events.NewType[letter, query]("letter", "A letter.", nil)
		srv, err := mcpkit.New(&silent{}, mcpkit.Name("x", "1"), events.New(typ))
		require.NoError(t, err)
		defer func() { require.NoError(t, srv.Close()) }()
		p := (&office{t: t, srv: srv}).as(nil)
		cursor := member(t, p.result("events/poll", `{"name":"letter"}`), "cursor")
		require.NoError(t, typ.Emit(t.Context(), letter{Number: "1"}))
		require.Contains(t, p.result("events/poll", `{"name":"letter","cursor":`+cursor+`}`), `"eventId":"1"`)
	})
	row(t, "odd principals", func(t *testing.T, o *office) {
		id := func(s string) string {
			return member(t, o.as(&oauth.Principal{Subject: s}).result("events/subscribe", hook("")), "id")
		}
		require.NotEqual(t, id("a\xff"), id("a\xfe"))
	})
}

// A letter has its identity as a pointer.
type letter struct {
	Number string `json:"number"`
}

func (l *letter) EventID() string { return l.Number }

// flaky fails updates.
type flaky struct {
	fleet.Engine
	down   atomic.Bool
	before func() // once
	after  bool   // before After, too
}

func (f *flaky) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	if f.down.Load() {
		return 0, errors.New("down")
	}
	return f.Engine.Update(ctx, set, r)
}

func (f *flaky) Create(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	f.once()
	return f.Engine.Create(ctx, set, r)
}

func (f *flaky) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	if f.after {
		f.once()
	}
	return f.Engine.After(ctx, group, log, seq, limit)
}

func (f *flaky) once() {
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
}
