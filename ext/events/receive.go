package events

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Limits of a receiver.
const (
	maxSeen        = 1024            // IDs of occurrences that each subscription remembers
	minRefresh     = 5 * time.Second // between two refreshes of a subscription
	maxRefresh     = time.Hour
	endingPatience = 5 * time.Second // for events/unsubscribe
)

// ErrRefused is what a [Deliver] returns for an occurrence that it never accepts: the server does not
// send it again.
var ErrRefused = errors.New("events: refused")

// A Deliver receives an occurrence, or a [*GapError] instead. It returns nil once what it received is
// kept safe, within the few seconds that servers wait. After an error, the server sends it again for
// some minutes, unless it is [ErrRefused]. Occurrences come one at a time for each subscription.
type Deliver func(ctx context.Context, e *Occurrence, gap *GapError) error

// A Receiver receives webhooks: it serves the URL that [Receiver.Subscribe] tells servers, as an
// [http.Handler]. It checks signatures, answers the challenges of servers, and delivers each
// occurrence once, as far as it remembers: the last 1024 of each subscription.
type Receiver struct {
	url string

	mu    sync.Mutex
	hooks []*hook // guarded by mu
}

// A hook is a subscription of a receiver.
type hook struct {
	name    string
	secret  Secret
	deliver Deliver
	end     context.CancelCauseFunc // ends the subscription

	id     string                 // "" while the server has not said it; guarded by the mu of the receiver
	cursor atomic.Pointer[string] // the last that the server said

	turn sync.Mutex // held while an occurrence is delivered
	seen []string   // the IDs of those that were delivered, the oldest first; guarded by turn
}

// know notes where the subscription goes on after a restart of the server.
func (h *hook) know(cursor *string) {
	if cursor != nil {
		h.cursor.Store(cursor)
	}
}

// NewReceiver returns a receiver that servers reach at an https URL.
func NewReceiver(url string) *Receiver { return &Receiver{url: url} }

// ServeHTTP receives a webhook.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	media, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	switch {
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case media != "application/json":
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	var c Control
	if err != nil || jsonx.Unmarshal(body, &c) != nil { // an occurrence has no type
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h, status := r.find(req.Header, body, c.Type == ControlVerification)
	switch {
	case h == nil:
	case c.Type == ControlVerification:
		text, _ := jsonx.Marshal(map[string]string{"challenge": c.Challenge}) // a string always encodes
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
		return
	case c.Type == ControlGap:
		status = statusOf(h.deliver(req.Context(), nil, &GapError{}))
	case c.Type == ControlTerminated:
		h.end(&TerminatedError{c.Error})
	case c.Type == "":
		status = r.occurred(req.Context(), h, body)
	}
	w.WriteHeader(status)
}

// find returns the subscription of a webhook that is signed with its secret, or nil and the status
// that says why there is none. The challenge of a server may come before the ID of a subscription.
func (r *Receiver) find(header http.Header, body []byte, challenge bool) (h *hook, status int) {
	id := header.Get(HeaderSubscriptionID)
	if id == "" {
		return nil, http.StatusBadRequest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	status = http.StatusServiceUnavailable // so that the server tries again once the ID is known
	for _, h := range r.hooks {
		if h.id != id && (h.id != "" || !challenge) {
			continue
		}
		if verify(header, body, h.secret) == nil {
			h.id = id
			return h, http.StatusNoContent
		}
		status = http.StatusUnauthorized
	}
	return nil, status
}

// occurred delivers an occurrence, unless it was delivered before.
func (r *Receiver) occurred(ctx context.Context, h *hook, body []byte) (status int) {
	e := &Occurrence{}
	if jsonx.Unmarshal(body, e) != nil || e.EventID == "" || e.Name != h.name {
		return http.StatusBadRequest
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	if slices.Contains(h.seen, e.EventID) {
		return http.StatusNoContent
	}
	if status = statusOf(h.deliver(ctx, e, nil)); status != http.StatusServiceUnavailable {
		h.seen = append(h.seen[max(0, len(h.seen)+1-maxSeen):], e.EventID)
		h.know(e.Cursor)
	}
	return status
}

// statusOf returns the status for what a [Deliver] returned.
func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusNoContent
	case errors.Is(err, ErrRefused):
		return http.StatusGone
	}
	return http.StatusServiceUnavailable
}

// Subscribe subscribes to what happens, with a secret of its own, and refreshes the subscription until
// ctx ends; then it unsubscribes and returns the cause. The arguments must encode as a JSON object; nil
// means none. It returns earlier if the server refuses the subscription, or, with a
// [*TerminatedError], if it ends it.
//
// To go on after a restart, keep the Cursor of the last occurrence, and begin from there.
func (r *Receiver) Subscribe(
	ctx context.Context, c *client.Client, name string, arguments any, from Position, deliver Deliver,
) error {
	sub, err := subscription(c, name, arguments)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	h := &hook{name: name, secret: NewSecret(), deliver: deliver, end: end}
	h.know(from.Cursor)
	r.mu.Lock()
	r.hooks = append(r.hooks, h)
	r.mu.Unlock()
	defer r.remove(h)
	var lapses time.Time // when the subscription does; zero before the server has agreed
	for failures := 0; ; {
		wait := backoff(failures)
		res, err := r.refresh(ctx, c, h, sub, from.MaxAgeMs)
		switch {
		case err == nil:
			lapsed := !lapses.IsZero() && time.Now().After(lapses)
			if res.Truncated || lapsed && res.Cursor == nil {
				if err := deliver(ctx, nil, &GapError{}); err != nil {
					end(err)
				}
			}
			lapses = time.Now().Add(2 * maxRefresh)
			if res.RefreshBefore != nil {
				lapses = *res.RefreshBefore
			}
			wait = min(max(time.Until(lapses)/2, minRefresh), maxRefresh)
			failures = 0
		case ctx.Err() == nil && (lapses.IsZero() || !client.Transient(err)):
			return err
		default:
			failures++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			r.unsubscribe(ctx, c, sub)
			return context.Cause(ctx)
		}
	}
}

// refresh subscribes, or says that the subscription is still wanted.
func (r *Receiver) refresh(
	ctx context.Context, c *client.Client, h *hook, sub Subscription, maxAge *int64,
) (*SubscribeResult, error) {
	res := &SubscribeResult{}
	from := Position{h.cursor.Load(), maxAge}
	params := &SubscribeParams{Subscription: sub, Position: from, Delivery: Delivery{Webhook, r.url, h.secret}}
	if err := c.Request(ctx, MethodSubscribe, params, res); err != nil {
		return nil, err
	}
	h.know(res.Cursor)
	r.mu.Lock()
	defer r.mu.Unlock()
	h.id = res.ID
	return res, nil
}

func (r *Receiver) unsubscribe(ctx context.Context, c *client.Client, sub Subscription) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endingPatience)
	defer cancel()
	params := &UnsubscribeParams{sub, Delivery{Mode: Webhook, URL: r.url}}
	_ = c.Request(ctx, MethodUnsubscribe, params, nil) // the subscription lapses anyway
}

func (r *Receiver) remove(h *hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = slices.DeleteFunc(r.hooks, func(other *hook) bool { return other == h })
}
