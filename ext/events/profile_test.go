package events_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

// ChatGPT reads the member events of the capabilities, subscribes webhooks without a TTL, answers
// challenges, and needs one event in each body, with the event's ID as webhook-id.
func TestChatGPT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, nil)
		p := o.as(ann)
		require.Equal(t, `{}`, member(t, p.result("server/discover", `{}`), "capabilities", "events"))
		require.Contains(t, member(t, p.result("events/list", `{}`), "events"), `"delivery":["poll","push","webhook"]`)

		const delivery = `"delivery":{"mode":"webhook","url":"https://connectors.api.openai.com/webhook/mcp-events/0123456789abcdef0123456789abcdef"`
		subscribe := func(secret string) string {
			return p.result("events/subscribe", `{"name":"mail_arrived","arguments":{},"cursor":null,`+delivery+`,"secret":"`+secret+`"}}`)
		}
		result := subscribe(secret)
		require.Equal(t, `"2000-01-01T01:00:00Z"`, member(t, result, "refreshBefore"))
		require.Len(t, o.hooks.take(), 1, "the challenge")

		o.hooks.answer = func(r *http.Request, body string) (int, string) {
			if len(o.hooks.got) == 2 {
				return http.StatusBadGateway, ""
			}
			return http.StatusOK, ""
		}
		o.emit("1")
		require.NoError(t, o.arrived.Emit(t.Context(), mail{ID: "large", From: strings.Repeat("x", events.MaxBody)}))
		o.emit("2")
		time.Sleep(time.Minute)
		bodies := o.hooks.take()
		require.Len(t, bodies, 4, "1 twice, a gap in place of the one that is too large, and 2")
		require.Equal(t, bodies[0], bodies[1])
		first, again := o.hooks.got[1].Header, o.hooks.got[2].Header
		require.Equal(t, "1", first.Get("Webhook-Id"))
		require.Equal(t, "1", again.Get("Webhook-Id"))
		require.NotEqual(t, first.Get("Webhook-Timestamp"), again.Get("Webhook-Timestamp"))
		require.NotEqual(t, first.Get("Webhook-Signature"), again.Get("Webhook-Signature"))
		require.Equal(t, `"`+first.Get("X-MCP-Subscription-Id")+`"`, member(t, result, "id"))

		require.Equal(t, member(t, result, "id"), member(t, subscribe(string(events.NewSecret())), "id"))
		require.Empty(t, o.hooks.take(), "a refresh is not challenged")
		o.emit("3")
		synctest.Wait()
		require.Len(t, strings.Fields(o.hooks.got[len(o.hooks.got)-1].Header.Get("Webhook-Signature")), 2, "while the secret is replaced")
		for range 2 { // the second time there is nothing
			require.Contains(t, p.result("events/unsubscribe", `{"name":"mail_arrived","arguments":{},`+delivery+`}}`), "{")
		}
		o.hooks.take()
		o.emit("4")
		time.Sleep(time.Minute)
		require.Empty(t, o.hooks.take())
	})
}

// The AI SDK refuses results of events/subscribe that lack a member, and webhooks whose ID and name
// are not those of the event and of the subscription.
func TestAISDK(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, nil)
		p := o.as(ann)
		var result struct {
			ID            string
			RefreshBefore time.Time
			Cursor        *string
			Truncated     *bool
		}
		require.NoError(t, json.Unmarshal([]byte(p.result("events/subscribe",
			`{"name":"mail_arrived","delivery":{"mode":"webhook","url":"https://x.example/hook?key=a%2Fb","secret":"`+secret+`"}}`)), &result))
		require.NotEmpty(t, result.ID)
		require.False(t, result.RefreshBefore.IsZero())
		require.NotNil(t, result.Cursor)
		require.NotNil(t, result.Truncated)
		o.emit("1")
		synctest.Wait()
		require.Equal(t, "https://x.example/hook?key=a%2Fb", o.hooks.got[1].URL.String())
		require.Equal(t, `"mail_arrived"`, member(t, o.hooks.bodies[1], "name"))
		require.Equal(t, `"`+o.hooks.got[1].Header.Get("Webhook-Id")+`"`, member(t, o.hooks.bodies[1], "eventId"))
	})
}

func TestAReceiverGetsWhatAServerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, nil)
		c := mcptest.New(t, o.srv).As(ann).Client()
		r := events.NewReceiver("https://agent.example/hook")
		o.hooks.answer = func(req *http.Request, body string) (int, string) {
			w := httptest.NewRecorder()
			again := httptest.NewRequest(req.Method, req.URL.String(), strings.NewReader(body))
			again.Header = req.Header
			r.ServeHTTP(w, again)
			return w.Code, w.Body.String()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		ended := make(chan error, 1)
		go func() {
			ended <- r.Subscribe(ctx, c, "mail_arrived", query{From: "ann"}, events.Position{}, func(_ context.Context, e *events.Occurrence, gap error) error {
				got = append(got, e.EventID)
				return nil
			})
		}()
		synctest.Wait()
		o.emit("1", "2")
		require.NoError(t, o.arrived.Emit(t.Context(), mail{ID: "3", From: "bob"}))
		time.Sleep(3 * time.Hour) // longer than the subscription lives without a refresh
		o.emit("4")
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		o.emit("5")
		synctest.Wait()
		require.Equal(t, []string{"1", "2", "4"}, got)
	})
}
