package events_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/publicnet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// The subtests of this file have the names of the rows of the extension's conformance suite.

// row runs a subtest in a bubble, with a server of its own.
func row(t *testing.T, name string, test func(t *testing.T, o *office), opts ...events.Option) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, open(t, nil, opts...)) })
	})
}

const (
	callback = `https://x.example/hook`
	mails    = `{"name":"mail_arrived"}`
)

// hook returns the params of a webhook subscription, with more members before the delivery.
func hook(more string) string {
	return `{"name":"mail_arrived",` + more + `"delivery":{"mode":"webhook","url":"` + callback + `","secret":"` + secret + `"}}`
}

func TestDeclarationRows(t *testing.T) {
	row(t, "capability-events-object", func(t *testing.T, o *office) {
		caps := member(t, o.as(ann).result("server/discover", `{}`), "capabilities")
		require.Equal(t, `{}`, member(t, caps, "events"))
		require.Equal(t, `{"listChanged":true}`, member(t, caps, "extensions", events.ID))
	})
	t.Run("method-not-found-when-undeclared", func(t *testing.T) {
		srv, err := mcpkit.New(&silent{}, mcpkit.Name("x", "1"))
		require.NoError(t, err)
		p := (&office{t: t, srv: srv}).as(nil)
		require.Equal(t, "-32601 ", p.fails("events/list", `{}`))
	})
	row(t, "descriptor", func(t *testing.T, o *office) {
		list := member(t, o.as(ann).result("events/list", `{}`), "events")
		require.Equal(t, `[{"name":"knocked","description":"Tells who is at the door.","delivery":["poll","push","webhook"]`+
			`,"inputSchema":`+querySchema+`,"payloadSchema":`+mailSchema+`},{"name":"mail_arrived","description":"A mail has arrived.",`+
			`"delivery":["poll","push","webhook"],"inputSchema":`+querySchema+`,"payloadSchema":`+mailSchema+`}]`, list)
		stranger := o.as(&oauth.Principal{Subject: "eve"})
		require.NotContains(t, stranger.result("events/list", `{}`), "knocked", "its scope is missing")
		require.Equal(t, `-32011 {"kind":"event"}`, stranger.fails("events/poll", `{"name":"knocked"}`))
	})
	row(t, "list-changed-notification", func(t *testing.T, o *office) {
		p := o.as(ann)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.rpc(ctx, "subscriptions/listen", `{"notifications":{"eventsListChanged":true}}`)
		}()
		synctest.Wait()
		require.Contains(t, <-p.sent, `"notifications":{"eventsListChanged":true}`)
		require.NoError(t, o.srv.Add(mcpkit.NewEvent("more", (*inbox)(nil).Knocked)))
		synctest.Wait()
		require.Contains(t, <-p.sent, `"method":"notifications/events/list_changed"`)
		cancel()
		<-done
	})
}

// silent is a service without events.
type silent struct{}

func (*silent) Nothing() {}

const (
	querySchema = `{"type":"object","properties":{"from":{"type":"string","maxLength":10},"box":{"type":"string"}},"additionalProperties":false}`
	mailSchema  = `{"type":"object","properties":{"id":{"type":"string"},"from":{"type":"string"},` +
		`"at":{"type":"string","format":"date-time"}},"required":["id","from"]}`
)

func TestErrorRows(t *testing.T) {
	secretOf := func(n int) string {
		return `{"name":"mail_arrived","delivery":{"url":"` + callback + `","secret":"whsec_` + b64(n) + `"}}`
	}
	urlOf := func(url string) string {
		return `{"name":"mail_arrived","delivery":{"url":"` + url + `","secret":"` + secret + `"}}`
	}
	synctest.Test(t, func(t *testing.T) {
		o := open(t, nil)
		p := o.as(ann)
		for name, test := range map[string]struct{ method, params, want string }{
			"error-not-found":                  {"events/poll", `{"name":"nothing"}`, `-32011 {"kind":"event"}`},
			"poll-invalid-arguments":           {"events/poll", `{"name":"mail_arrived","arguments":{"from":"longer than that"}}`, "-32602"},
			"stream-error-before-open":         {"events/stream", `{"name":"mail_arrived","arguments":{"to":"x"}}`, "-32602"},
			"subscribe-secret-required":        {"events/subscribe", `{"name":"mail_arrived","delivery":{"url":"` + callback + `"}}`, "-32602"},
			"subscribe-secret-rejected/short":  {"events/subscribe", secretOf(23), "-32602"},
			"subscribe-secret-rejected/long":   {"events/subscribe", secretOf(65), "-32602"},
			"subscribe-url-https-required":     {"events/subscribe", urlOf(""), "-32602"},
			"subscribe-url-non-https-rejected": {"events/subscribe", urlOf("http://x.example/"), "-32602"},
			"url with a password":              {"events/subscribe", urlOf("https://a:b@x.example/"), "-32602"},
			"ssrf-validate-callback-url":       {"events/subscribe", urlOf("https://[::ffff:10.0.0.1]/"), "-32602"},
			"subscribe-webhook-only":           {"events/subscribe", strings.Replace(hook(""), `"webhook"`, `"push"`, 1), `-32014 {"feature":"deliveryMode","value":"push"}`},
		} {
			got := p.fails(test.method, test.params)
			require.True(t, strings.HasPrefix(got, test.want), "%s: %s", name, got)
			require.Empty(t, o.hooks.take(), "%s: nothing is sent before all of it is valid", name)
		}
		for _, method := range []string{"events/subscribe", "events/unsubscribe"} {
			require.Contains(t, o.as(nil).fails(method, hook("")), "-32012", "subscribe-auth-required")
		}
		for i := range 100 {
			p.result("events/subscribe", hook(fmt.Sprintf(`"arguments":{"box":"%d"},`, i)))
		}
		require.Equal(t, `-32013 {"limit":"principal_subscriptions","max":100}`, p.fails("events/subscribe", hook("")), "error-resource-exhausted")
		o.as(&oauth.Principal{Subject: "bob"}).result("events/subscribe", hook(""))

		o.hooks.answer = func(*http.Request, string) (int, string) { return 200, `{"challenge":"another"}` }
		other := strings.Replace(hook(""), "x.example", "y.example", 1)
		require.Equal(t, `-32015 {"reason":"challenge_failed"}`, o.as(&oauth.Principal{Subject: "eve"}).fails("events/subscribe", other), "verification-challenge-echo")
	})
}

// b64 returns n bytes in base64.
func b64(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", n))) }

func TestPollRows(t *testing.T) {
	poll := func(p *peer, cursor, more string) (events, next string, truncated, hasMore bool) {
		r := p.result("events/poll", `{"name":"mail_arrived","cursor":`+cursor+more+`}`)
		require.Equal(p.t, "5000", member(p.t, r, "nextPollMs"))
		return member(p.t, r, "events"), member(p.t, r, "cursor"), member(p.t, r, "truncated") == "true", member(p.t, r, "hasMore") == "true"
	}
	row(t, "poll", func(t *testing.T, o *office) {
		p := o.as(nil)
		o.emit("0")
		got, begin, truncated, more := poll(p, "null", "")
		require.Equal(t, "[]", got, "cursor-null-starts-from-now")
		require.False(t, truncated || more)
		require.Equal(t, begin, member(t, p.result("events/poll", mails), "cursor"), "cursor-absent-equals-null")

		o.emit("1", "2", "3", "1")
		got, next, _, more := poll(p, begin, `,"maxEvents":2`)
		require.True(t, more, "poll-has-more")
		require.Equal(t, 2, strings.Count(got, "eventId"), "poll-max-events-cap")
		got, next, truncated, more = poll(p, next, "")
		require.Equal(t, 1, strings.Count(got, "eventId"), "an ID is told once")
		require.Contains(t, got, `"eventId":"3","name":"mail_arrived"`)
		require.False(t, truncated || more)

		_, quiet, _, _ := poll(p, next, `,"arguments":{"from":"bob"}`)
		require.Equal(t, next, quiet)
		o.emit("4")
		got, quiet, _, _ = poll(p, next, `,"arguments":{"from":"bob"}`)
		require.Equal(t, "[]", got)
		require.NotEqual(t, next, quiet, "cursor-advances-when-quiet")

		time.Sleep(time.Minute)
		o.emit("5")
		got, _, truncated, _ = poll(p, begin, `,"maxAgeMs":1000`)
		require.Equal(t, 1, strings.Count(got, "eventId"), "max-age-ms-floor")
		require.True(t, truncated, "max-age-ms-sets-truncated")
		_, _, truncated, _ = poll(p, "null", `,"maxAgeMs":1000`)
		require.False(t, truncated, "max-age-ms-ignored-when-cursor-null")
		for _, strange := range []string{`"zzzzzzzzzzzz"`, `"-"`, `""`} {
			got, next, truncated, _ = poll(p, strange, "")
			require.Equal(t, "[]", got)
			require.True(t, truncated, "truncated-poll-never-an-error")
			require.NotEqual(t, strange, next, "truncated-returns-fresh-cursor")
		}
		for i := range 4100 {
			o.emit("n" + strconv.Itoa(i))
		}
		got, _, truncated, more = poll(p, begin, "")
		require.True(t, truncated && more, "replay-ceiling-sets-truncated")
		require.Contains(t, got, `"eventId":"n4"`)
	})
	t.Run("poll-stateless-request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := fleet.NewMemory(fleet.MemoryOptions{})
			a, b := open(t, store), open(t, store.Open())
			_, begin, _, _ := poll(a.as(nil), "null", "")
			a.emit("1")
			b.emit("1", "2")
			got, _, _, _ := poll(b.as(nil), begin, "")
			require.Equal(t, 2, strings.Count(got, "eventId"), "once for each ID, from both replicas")
		})
	})
	row(t, "events of methods", func(t *testing.T, o *office) {
		p, q := o.as(ann), `{"name":"knocked","arguments":{"box":"a"}`
		begin := member(t, p.result("events/poll", q+"}"), "cursor")
		o.inbox.knocks <- mail{ID: "1"}
		synctest.Wait()
		require.Contains(t, p.result("events/poll", q+`,"cursor":`+begin+"}"), `"eventId":"1"`)
		bob := o.as(&oauth.Principal{Subject: "bob", Scopes: []string{"door"}})
		require.NotContains(t, bob.result("events/poll", q+`,"cursor":`+begin+"}"), `"eventId":"1"`, "it was told to ann alone")
		synctest.Wait()
		require.Equal(t, 2, o.inbox.opened, "once for each subscriber")
	})
}

func TestStreamRows(t *testing.T) {
	row(t, "stream", func(t *testing.T, o *office) {
		p := o.as(ann)
		end := p.stream(`{"name":"mail_arrived","arguments":{"from":"ann"}}`)
		got := p.take()
		require.Len(t, got, 1)
		require.True(t, strings.HasPrefix(got[0], `active","params":{"cursor":"`), "stream-active-confirmation")
		require.Contains(t, got[0], `"truncated":false,"_meta":{"io.modelcontextprotocol/subscriptionId":7}`, "stream-subscription-id-meta")
		o.emit("1")
		require.NoError(t, o.arrived.Emit(t.Context(), mail{ID: "2", From: "bob"}))
		got = p.take()
		require.Len(t, got, 1, "stream-carries-only-event-notifications")
		require.Contains(t, got[0], `"eventId":"1"`)
		require.Contains(t, got[0], `"cursor":"`)
		time.Sleep(time.Minute + time.Second)
		got = p.take()
		require.Len(t, got, 3, "stream-heartbeat-interval")
		require.True(t, strings.HasPrefix(got[0], `heartbeat","params":{"cursor":"`), "stream-heartbeat-carries-cursor")
		result := end()
		require.Contains(t, result, `<nil> {"resultType":"complete","_meta":{`, "stream-final-result-shape")
		require.Contains(t, result, `"io.modelcontextprotocol/subscriptionId":7`)
		o.emit("3")
		require.Empty(t, p.take(), "stream-cancel-stops-delivery")
	})
	row(t, "cursor", func(t *testing.T, o *office) {
		p := o.as(ann)
		begin := member(t, p.result("events/poll", mails), "cursor")
		for i := range 250 { // more than one batch
			o.emit(strconv.Itoa(i))
		}
		end := p.stream(`{"name":"mail_arrived","cursor":` + begin + `}`)
		require.Len(t, p.take(), 251)
		end()
	})
	row(t, "stream-exempt-from-concurrency-cap", func(t *testing.T, o *office) {
		p := o.as(ann)
		var ends []func() string
		for range 100 {
			ends = append(ends, p.stream(mails))
		}
		require.Len(t, p.take(), 100)
		for range 5 { // no limit of time
			time.Sleep(time.Minute)
			p.take()
		}
		o.emit("1")
		require.Len(t, p.take(), 100)
		for _, end := range ends {
			end()
		}
	})
	revoker := new(events.Revoker)
	row(t, "stream-terminated-ends-subscription", func(t *testing.T, o *office) {
		p, other := o.as(ann), o.as(&oauth.Principal{Subject: "bob"})
		end, endOther := p.stream(mails), other.stream(mails)
		p.take()
		require.NoError(t, revoker.Revoke(t.Context(), ann))
		got := p.take()
		require.Len(t, got, 1)
		require.Contains(t, got[0], `terminated","params":{"error":{"code":-32012`)
		require.Contains(t, end(), "<nil>")
		other.take()
		o.emit("1")
		require.Len(t, other.take(), 1, "of another principal")
		endOther()
	}, revoker)
	row(t, "the credential expires", func(t *testing.T, o *office) {
		p := o.as(&oauth.Principal{Subject: "ann", Expires: time.Now().Add(time.Minute)})
		end := p.stream(mails)
		time.Sleep(2 * time.Minute)
		p.take()
		o.emit("1")
		require.Empty(t, p.take())
		require.Contains(t, end(), `"resultType":"complete"`)
	})
}

func TestSubscribeRows(t *testing.T) {
	id := func(p *peer, params string) string { return member(p.t, p.result("events/subscribe", params), "id") }
	row(t, "subscribe-key-composition", func(t *testing.T, o *office) {
		p := o.as(ann)
		first := id(p, hook(`"arguments":{"from":"a","box":"b"},`))
		require.Equal(t, first, id(p, hook(`"arguments":{"box":"b","from":"a"},`)), "subscribe-idempotent-upsert")
		require.NotEqual(t, first, id(p, hook(`"arguments":{"box":"b"},`)))
		require.NotEqual(t, first, id(p, strings.Replace(hook(`"arguments":{"from":"a","box":"b"},`), "/hook", "/other", 1)))
		bob := o.as(&oauth.Principal{Subject: "bob"})
		require.NotEqual(t, first, id(bob, hook(`"arguments":{"from":"a","box":"b"},`)), "subscribe-cross-tenant-isolation")
		require.Equal(t, first, id(open(t, nil).as(ann), hook(`"arguments":{"from":"a","box":"b"},`)), "subscribe-id-derived")
	})
	row(t, "ttl", func(t *testing.T, o *office) {
		for ttl, want := range map[string]time.Duration{
			"":                         time.Hour, // ttl-omitted-means-default
			`"ttlMs":1000,`:            time.Minute,
			`"ttlMs":120000,`:          2 * time.Minute, // ttl-refresh-before-lte-suggestion
			`"ttlMs":-10000000000000,`: time.Minute,
			`"ttlMs":99999999999,`:     time.Hour, // ttl-no-rejection-path: longer ones would not survive a restart
			`"ttlMs":null,`:            time.Hour,
		} {
			got := member(t, o.as(ann).result("events/subscribe", hook(ttl)), "refreshBefore")
			require.Equal(t, strconv.Quote(time.Now().Add(want).UTC().Format(time.RFC3339)), got, ttl)
		}
		o.hooks.take()
		time.Sleep(2 * time.Hour)
		o.emit("1")
		synctest.Wait()
		require.Empty(t, o.hooks.take(), "it has expired")
	})
	row(t, "unsubscribe-by-key", func(t *testing.T, o *office) {
		p, bob := o.as(ann), o.as(&oauth.Principal{Subject: "bob"})
		p.result("events/subscribe", hook(""))
		bob.result("events/unsubscribe", hook("")) // ends nothing of ann
		o.hooks.take()
		o.emit("1")
		synctest.Wait()
		require.Len(t, o.hooks.take(), 1)
		p.result("events/unsubscribe", hook(""))
		o.emit("2")
		time.Sleep(time.Minute)
		require.Empty(t, o.hooks.take())
	})
	row(t, "unsubscribe-unknown-not-found", func(t *testing.T, o *office) {
		require.Equal(t, `-32023 {"kind":"subscription"}`, o.as(ann).fails("events/unsubscribe", hook("")))
	}, events.SEP3415)
	row(t, "clients with sessions", func(t *testing.T, o *office) {
		p := o.as(ann)
		p.session = transport.NewSession("", nil)
		caps := member(t, p.result("initialize", `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`), "capabilities")
		require.Equal(t, `{}`, member(t, caps, "events"))
		require.Contains(t, p.result("events/list", `{}`), `"mail_arrived"`)
		p.result("events/subscribe", hook(""))
		p.session = nil // the session ends, the subscription does not
		o.hooks.take()
		o.emit("1")
		synctest.Wait()
		require.Len(t, o.hooks.take(), 1)
	})
}

func TestDeliveryRows(t *testing.T) {
	subscribe := func(o *office) string {
		r := o.as(ann).result("events/subscribe", hook(""))
		o.hooks.take()
		return r
	}
	ids := func(o *office) (all []string) {
		synctest.Wait()
		for _, body := range o.hooks.take() {
			if strings.Contains(body, "eventId") {
				all = append(all, strings.Trim(member(o.t, body, "eventId"), `"`))
			} else {
				all = append(all, strings.Trim(member(o.t, body, "type"), `"`))
			}
		}
		return all
	}
	status := func(code func(body string) int) func(*http.Request, string) (int, string) {
		return func(_ *http.Request, body string) (int, string) { return code(body), "" }
	}
	for code, want := range map[int][]string{
		410: {"1", "2"},        // delivery-410-non-retryable: for this event only
		413: {"1", "gap", "2"}, // delivery-413-non-retryable
		404: {"1", "1", "1", "1", "1", "gap", "2"},
		307: {"1", "1", "1", "1", "1", "gap", "2"},
	} {
		row(t, "status "+strconv.Itoa(code), func(t *testing.T, o *office) {
			subscribe(o)
			o.hooks.answer = status(func(body string) int {
				if strings.Contains(body, `"eventId":"1"`) {
					return code
				}
				return 204
			})
			o.emit("1", "2")
			time.Sleep(5 * time.Minute)
			require.Equal(t, want, ids(o))
		})
	}
	row(t, "delivery-retries-bounded", func(t *testing.T, o *office) {
		subscribe(o)
		var down atomic.Bool
		down.Store(true)
		o.hooks.answer = status(func(string) int {
			if down.Load() {
				return 503
			}
			return 200
		})
		o.emit("1", "2")
		time.Sleep(45 * time.Minute)
		require.Len(t, ids(o), 12)
		require.Empty(t, ids(o), "it is suspended")
		r := o.as(ann).result("events/subscribe", hook(""))
		require.Equal(t, "false", member(t, r, "deliveryStatus", "active"))
		require.Equal(t, `"http_5xx"`, member(t, r, "deliveryStatus", "lastError"), "delivery-status-last-error-category")
		down.Store(false)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"1", "2"}, slicesTail(ids(o), 2), "subscribe-refresh-reactivates, in order")
	})
	row(t, "webhook-id of each message", func(t *testing.T, o *office) {
		for _, subject := range []string{"ann", "bob"} {
			o.as(&oauth.Principal{Subject: subject}).result("events/subscribe", hook(""))
		}
		o.emit("1")
		synctest.Wait()
		ids := map[string]bool{}
		for _, r := range o.hooks.got[2:] { // after the challenges
			ids[r.Header.Get("Webhook-Id")] = true
		}
		require.Len(t, ids, 2)
		require.NotContains(t, ids, "1")
	}, events.SEP3415)
	revoker := new(events.Revoker)
	row(t, "envelope-terminated", func(t *testing.T, o *office) {
		subscribe(o)
		require.NoError(t, revoker.Revoke(t.Context(), ann))
		synctest.Wait()
		bodies := o.hooks.take()
		require.Len(t, bodies, 1)
		require.Contains(t, bodies[0], `{"type":"terminated","error":{"code":-32012`)
		require.NotEmpty(t, o.hooks.got[1].Header.Get("Webhook-Signature"), "envelope-signed-like-deliveries")
		require.True(t, strings.HasPrefix(o.hooks.got[1].Header.Get("Webhook-Id"), "msg_terminated_"), "envelope-webhook-id-format")
		o.emit("1")
		time.Sleep(time.Minute)
		require.Empty(t, ids(o))
	}, revoker)
	t.Run("authz-delivery-time-reverify", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var hidden atomic.Bool
			o := &office{t: t, arrived: newArrived(), hooks: newReceiver()}
			var err error
			o.srv, err = mcpkit.New(&inbox{}, mcpkit.Name("office", "1"), mcpkit.Authenticated(), events.New(o.arrived, events.Receivers(o.hooks)),
				mcpkit.Visible(func(context.Context, *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
					return func(mcpkit.Entry) bool { return !hidden.Load() }, ""
				}))
			require.NoError(t, err)
			require.NoError(t, o.srv.Start(t.Context()))
			defer func() { require.NoError(t, o.srv.Close()) }()
			subscribe(o)
			hidden.Store(true)
			time.Sleep(2 * time.Minute)
			o.emit("1")
			require.Equal(t, []string{"terminated"}, ids(o))
		})
	})
	t.Run("another replica takes over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := fleet.NewMemory(fleet.MemoryOptions{})
			a, b := open(t, store), open(t, store.Open())
			subscribe(a)
			a.emit("1")
			b.emit("2")
			synctest.Wait()
			require.Equal(t, []string{"1", "2"}, ids(a), "the replica that has the subscription delivers")
			require.NoError(t, a.srv.Close())
			b.emit("3")
			time.Sleep(time.Minute)
			require.Equal(t, []string{"3"}, ids(b))
			for i := range 1100 {
				b.as(&oauth.Principal{Subject: strconv.Itoa(i % 11)}).result("events/subscribe",
					hook(fmt.Sprintf(`"arguments":{"box":"%d"},`, i)))
			}
			c := open(t, store.Open())
			require.NoError(t, b.srv.Close())
			c.emit("4")
			time.Sleep(11 * time.Second)
			require.Len(t, ids(c), 1101)
		})
	})
}

func TestNetworkRows(t *testing.T) {
	moved := 0
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			moved++
		}
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.Copy(w, r.Body) // which has the challenge
	}))
	defer receiver.Close()
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())
	// The server's certificate is for example.com and the loopback addresses.
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	anywhere := func(netip.Addr) error { return nil }
	port := receiver.URL[strings.LastIndex(receiver.URL, ":"):]
	for name, test := range map[string]struct {
		url, want string
		check     func(netip.Addr) error
		config    *tls.Config
	}{
		"verification-challenge-echo":     {receiver.URL, "", anywhere, config},
		"ssrf-validate-at-delivery-time":  {"https://localhost" + port, "-32015 " + `{"reason":"connection_refused"}`, publicnet.Check, config},
		"ssrf-no-redirects":               {receiver.URL + "/redirect", "-32015 " + `{"reason":"challenge_failed"}`, anywhere, config},
		"certificates are verified":       {receiver.URL, "-32015 " + `{"reason":"tls_error"}`, anywhere, nil},
		"the name is that of the address": {"https://localhost" + port, "-32015 " + `{"reason":"tls_error"}`, anywhere, config},
	} {
		p := open(t, nil, events.Network(test.check, test.config)).as(ann)
		params := strings.Replace(hook(""), callback, test.url, 1)
		if test.want == "" {
			p.result("events/subscribe", params)
			continue
		}
		require.Equal(t, test.want, p.fails("events/subscribe", params), name)
	}
	require.Zero(t, moved)
}

func slicesTail(all []string, n int) []string { return all[max(len(all)-n, 0):] }
