package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

// subscribed returns a result of events/subscribe, in a bubble, whose time begins in 2000.
func subscribed(before, rest string) string {
	return `{"resultType":"complete","id":"sub_1","refreshBefore":"2000-01-01T` + before + `Z"` + rest + `}`
}

// post posts a webhook of the subscription sub_1, and returns the status and the body of the response.
func post(t *testing.T, r *Receiver, secret Secret, body string, edits ...func(*http.Request)) string {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set(HeaderSubscriptionID, "sub_1")
	require.NoError(t, sign(req.Header, "msg_1", time.Now(), []byte(body), secret))
	for _, edit := range edits {
		edit(req)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Body))
}

// secretOfHook returns the secret of the only subscription.
func secretOfHook(r *Receiver) Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks[0].params.Delivery.Secret
}

func TestSubscriptionsAreRefreshedUntilTheyEnd(t *testing.T) {
	follow(t, map[string][]string{MethodSubscribe: {
		subscribed("01:00:00", `,"cursor":"c1","truncated":false`),
		"fail the database is down",
		subscribed("02:00:00", `,"cursor":null,"truncated":true`),
		subscribed("02:00:00", ``),
	}}, func(t *testing.T, s *script, c *client.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		r, gaps, ended := NewReceiver("https://agent.example/hook?key=1"), 0, make(chan error, 1)
		go func() {
			ended <- r.Subscribe(ctx, c, "n", map[string]string{"from": "ann"}, Position{}, func(_ context.Context, e *Occurrence, gap error) error {
				require.ErrorIs(t, gap, ErrGap)
				gaps++
				return nil
			})
		}()
		synctest.Wait()
		secret := secretOfHook(r)
		require.Equal(t, "204", post(t, r, secret, `{"type":"gap"}`))
		time.Sleep(2 * time.Hour)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		const params = `{"name":"n","arguments":{"from":"ann"},"cursor":%s,"delivery":{"mode":"webhook","url":"https://agent.example/hook?key=1","secret":"%s"}}`
		require.Equal(t, []string{
			"events/subscribe 0.0 " + fmt.Sprintf(params, "null", string(secret)),
			"events/subscribe 1800.0 " + fmt.Sprintf(params, `"c1"`, string(secret)),
			"events/subscribe 1801.0 " + fmt.Sprintf(params, `"c1"`, string(secret)),
			"events/subscribe 4500.5 " + fmt.Sprintf(params, `"c1"`, string(secret)),
		}, s.seen[:4])
		require.Equal(t, `events/unsubscribe 7200.0 {"name":"n","arguments":{"from":"ann"},"delivery":{"mode":"webhook","url":"https://agent.example/hook?key=1"}}`, s.seen[len(s.seen)-1])
		require.Equal(t, 2, gaps, "one of the server, one of the refresh")
		require.Equal(t, "503", post(t, r, secret, `{"type":"gap"}`))
	})
}

func TestAServerEndsSubscriptions(t *testing.T) {
	follow(t, map[string][]string{MethodSubscribe: {"refuse not yours", subscribed("01:00:00", "")}}, func(t *testing.T, _ *script, c *client.Client) {
		r, ended := NewReceiver("https://agent.example/hook"), make(chan error, 1)
		subscribe := func() { ended <- r.Subscribe(t.Context(), c, "n", nil, Position{}, nil) }
		go subscribe()
		require.EqualError(t, <-ended, "client: events/subscribe: not yours (code -32012)")
		go subscribe()
		synctest.Wait()
		require.Equal(t, "204", post(t, r, secretOfHook(r), `{"type":"terminated","error":{"code":-32012,"message":"revoked"}}`))
		require.EqualError(t, <-ended, "events: the server ended the subscription: revoked (code -32012)")
	})
}

func TestWebhooks(t *testing.T) {
	follow(t, map[string][]string{MethodSubscribe: {"wait 1s; " + subscribed("20:00:00", "")}}, func(t *testing.T, _ *script, c *client.Client) {
		r, delivered := NewReceiver("https://agent.example/hook"), ""
		ctx, cancel := context.WithCancel(t.Context())
		ended, slow := make(chan error, 1), make(chan bool)
		go func() {
			ended <- r.Subscribe(ctx, c, "n", nil, Position{}, func(_ context.Context, e *Occurrence, _ error) error {
				switch e.EventID {
				case "slow":
					<-slow
				case "refused":
					return fmt.Errorf("spam: %w", ErrRefused)
				case "failing":
					return errors.New("the disk is full")
				case "panicking":
					panic("a bug")
				}
				delivered += e.EventID + " "
				return nil
			})
		}()
		synctest.Wait()
		secret := secretOfHook(r)
		event := func(id string) string { return "{" + occurrence(id, "") + "}" }
		challenge := `{"type":"verification","challenge":"<nonce>"}`
		header := func(name, value string) func(*http.Request) {
			return func(req *http.Request) { req.Header.Set(name, value) }
		}

		require.Equal(t, "503", post(t, r, secret, event("early")), "before the server has said its ID")
		require.Equal(t, "401", post(t, r, NewSecret(), challenge))
		require.Equal(t, `200 {"challenge":"<nonce>"}`, post(t, r, secret, challenge), "before the server has said its ID")
		require.Equal(t, "204", post(t, r, secret, event("first")), "the challenge has said it")
		time.Sleep(time.Second)
		require.Equal(t, "204", post(t, r, secret, event("first")))
		require.Equal(t, "204", post(t, r, secret, event("second")))
		require.Equal(t, "first second ", delivered)

		for name, row := range map[string]struct {
			status, body string
			edit         func(*http.Request)
		}{
			"another method":        {"405", "", func(req *http.Request) { req.Method = http.MethodGet }},
			"another type":          {"415", event("x"), header("Content-Type", "text/plain")},
			"too long":              {"413", `{"data":"` + strings.Repeat("x", MaxBody) + `"}`, header("X", "")},
			"not JSON":              {"400", "{", header("X", "")},
			"no ID of subscription": {"400", event("x"), header(HeaderSubscriptionID, "")},
			"unknown subscription":  {"503", event("x"), header(HeaderSubscriptionID, "sub_2")},
			"other challenge":       {"503", challenge, header(HeaderSubscriptionID, "sub_2")},
			"no ID":                 {"400", event(""), header("X", "")},
			"other name":            {"400", strings.Replace(event("x"), `"n"`, `"o"`, 1), header("X", "")},
			"unknown control":       {"204", `{"type":"news"}`, header("X", "")},
			"refused":               {"410", event("refused"), header("X", "")},
			"failing":               {"503", event("failing"), header("X", "")},
		} {
			require.Equal(t, row.status, post(t, r, secret, row.body, row.edit), name)
		}
		for range 2 { // the second time it is not taken for one that was delivered
			require.Panics(t, func() { post(t, r, secret, event("panicking")) })
		}
		answers := make(chan string)
		for range 2 { // the second waits for the first
			go func() { answers <- post(t, r, secret, event("slow")) }()
		}
		slow <- true
		require.Equal(t, "204 204", <-answers+" "+<-answers)
		for i := range 2 * maxSeen {
			require.Equal(t, "204", post(t, r, secret, event(fmt.Sprint(i))))
		}
		require.Len(t, r.hooks[0].seen, maxSeen)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
