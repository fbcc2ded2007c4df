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
	"github.com/mcpkit/mcpkit-go/middleware"
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
			o.hooks.answer = func(_ *http.Request, body string) (int, string) {
				time.Sleep(time.Second) // until all are emitted
				e.down.Store(strings.Contains(body, `"eventId":"1"`))
				return 200, ""
			}
			o.emit("1", "2", "3")
			time.Sleep(10 * time.Second)
			require.Len(t, o.hooks.take(), 1, "more than one is never delivered again")
			e.down.Store(false)
			time.Sleep(time.Minute)
			require.Len(t, o.hooks.take(), 2)

			o.as(ann).result("events/poll", `{"name":"knocked"}`)
			e.down.Store(true)
			o.inbox.knocks <- mail{ID: "1"}
			synctest.Wait()
			require.NoError(t, o.srv.Close())
			require.Zero(t, o.inbox.kept, "the method learns of it")
		})
	})
	revoker := new(events.Revoker)
	row(t, "a receiver is away when there is a gap", func(t *testing.T, o *office) {
		o.as(ann).result("events/subscribe", hook(""))
		var up atomic.Bool
		o.hooks.answer = func(*http.Request, string) (int, string) {
			if up.Load() {
				return 200, ""
			}
			return 503, ""
		}
		o.emit(strings.Repeat("x", events.MaxBody), "1")
		time.Sleep(time.Minute)
		o.hooks.take()
		up.Store(true)
		time.Sleep(time.Hour)
		bodies := o.hooks.take()
		require.Len(t, bodies, 2)
		require.Contains(t, bodies[0], `"type":"gap"`)
	})
	for name, test := range map[string]func(a, b *office){
		"the next replica tells of the gap": func(a, b *office) {
			a.emit(strings.Repeat("x", events.MaxBody))
			synctest.Wait()
			require.NoError(a.t, a.srv.Close())
		},
		"subscribed again elsewhere": func(a, b *office) {
			a.hooks.answer = func(*http.Request, string) (int, string) {
				time.Sleep(time.Second) // until b has heard of the revocation
				b.as(ann).result("events/subscribe", hook(""))
				return 200, ""
			}
			require.NoError(a.t, revoker.Revoke(a.t.Context(), ann))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := fleet.NewMemory(fleet.MemoryOptions{})
				a, b := open(t, store, revoker), open(t, store.Open())
				a.as(ann).result("events/subscribe", hook(""))
				test(a, b)
				time.Sleep(2 * time.Second)
				b.emit("1")
				time.Sleep(time.Minute)
				bodies := b.hooks.take()
				require.Len(t, bodies, 2, "something, and the event")
				require.Contains(t, bodies[1], `"eventId":"1"`)
			})
		})
	}
	row(t, "a slow client and a credential that ends", func(t *testing.T, o *office) {
		p := o.as(&oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)})
		cursor := member(t, p.result("events/poll", mails), "cursor")
		for i := range 500 {
			o.emit(strconv.Itoa(i))
		}
		p.sent = make(chan string, 1)
		end := p.stream(`{"name":"mail_arrived","cursor":` + cursor + `}`)
		time.Sleep(2 * time.Minute)
		n := 0
		for batch := p.take(); len(batch) > 0; batch = p.take() {
			n += len(batch)
		}
		require.Less(t, n, 200)
		end()
	})
	row(t, "the ports of a host", func(t *testing.T, o *office) {
		o.hooks.answer = func(*http.Request, string) (int, string) { return 404, "" }
		last := ""
		for port := range 11 {
			last = o.as(ann).fails("events/subscribe", strings.Replace(hook(""), "/hook", fmt.Sprintf(":%d/", 8000+port), 1))
		}
		require.Equal(t, `-32013 {"limit":"verification_rate"}`, last)
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
	for _, method := range []string{"events/subscribe", "events/stream"} {
		t.Run("revoked during "+method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := fleet.NewMemory(fleet.MemoryOptions{})
				e := &flaky{Engine: store}
				o := open(t, e)
				open(t, &flaky{Engine: store.Open(), mute: true}, revoker)
				o.emit("0")
				e.after = method == "events/stream"
				e.before = func() { require.NoError(t, revoker.Revoke(t.Context(), ann)) }
				resp := o.as(ann).rpc(t.Context(), method, hook(""))
				require.Nil(t, resp.Error)
				synctest.Wait()
				o.hooks.take()
				o.emit("1")
				time.Sleep(time.Minute)
				require.NotContains(t, strings.Join(o.hooks.take(), ""), "eventId")
			})
		})
	}
	t.Run("one too many at the same time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &flaky{Engine: fleet.NewMemory(fleet.MemoryOptions{})}
			p := open(t, e).as(ann)
			for i := range 99 {
				p.result("events/subscribe", hook(fmt.Sprintf(`"arguments":{"box":"%d"},`, i)))
			}
			e.before = func() { p.result("events/subscribe", hook("")) }
			require.Contains(t, p.fails("events/subscribe", hook(`"arguments":{"box":"99"},`)), "-32013")
		})
	})
	t.Run("a log begins twice", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &flaky{Engine: fleet.NewMemory(fleet.MemoryOptions{}), after: true}
			a, b := open(t, e.Engine.(*fleet.Local).Open()), open(t, e)
			var cursor string
			e.before = func() {
				cursor = member(t, a.as(nil).result("events/poll", mails), "cursor")
				a.emit("1")
				time.Sleep(time.Second)
			}
			b.emit("2")
			r := a.as(nil).result("events/poll", `{"name":"mail_arrived","cursor":`+cursor+`}`)
			require.Equal(t, "false", member(t, r, "truncated"))
			require.Equal(t, 2, strings.Count(r, "eventId"))
		})
	})
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
	row(t, "too many requests", func(t *testing.T, o *office) {
		o.srv.Use(middleware.RateLimit(1, 2))
		p := o.as(ann)
		p.result("events/poll", mails)
		p.result("events/subscribe", hook(""))
		for _, method := range []string{"events/poll", "events/stream", "events/subscribe"} {
			require.Contains(t, p.fails(method, hook("")), "retryAfterMs", method)
		}
		time.Sleep(5 * time.Minute) // the server's own questions do not count
		o.hooks.take()
		o.emit("1")
		synctest.Wait()
		require.Len(t, o.hooks.take(), 1)
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

// flaky fails updates and appends.
type flaky struct {
	fleet.Engine
	down   atomic.Bool
	before func() // once
	after  bool   // within After, too
	mute   bool   // others do not hear of anything
}

func (f *flaky) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	if f.down.Load() {
		return 0, errors.New("down")
	}
	return f.Engine.Update(ctx, set, r)
}

func (f *flaky) Append(ctx context.Context, group, log string, e fleet.Entry, keep fleet.Keep) error {
	if f.down.Load() {
		return errors.New("down")
	}
	return f.Engine.Append(ctx, group, log, e, keep)
}

func (f *flaky) Create(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	f.once()
	return f.Engine.Create(ctx, set, r)
}

func (f *flaky) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	all, err := f.Engine.After(ctx, group, log, seq, limit)
	if f.after {
		f.once()
	}
	return all, err
}

func (f *flaky) Publish(ctx context.Context, topic string, data []byte) error {
	if f.mute {
		return nil
	}
	return f.Engine.Publish(ctx, topic, data)
}

func (f *flaky) once() {
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
}
