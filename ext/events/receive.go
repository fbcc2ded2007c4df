package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
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

// A Deliver receives an occurrence, or [ErrGap] instead. It returns nil once what it received is kept
// safe, within the few seconds that servers wait. After an error, the server sends it again for some
// minutes, unless it is [ErrRefused]. It is called once at a time for each subscription.
type Deliver func(ctx context.Context, e *Occurrence, gap error) error

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
	params  SubscribeParams // the cursor is the last that the server said, guarded by the mu of the receiver
	deliver Deliver
	end     context.CancelCauseFunc // ends the subscription
	id      string                  // "" while the server has not said it; guarded by the mu of the receiver

	turn sync.Mutex // held while an occurrence is delivered
	seen []string   // the IDs of those that were delivered, the oldest first; guarded by turn
}

// NewReceiver returns a receiver that servers reach at an https URL.
func NewReceiver(url string) *Receiver { return &Receiver{url: url} }

// ServeHTTP receives a webhook.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if status := r.receive(w, req); status != http.StatusOK { // which is written
		w.WriteHeader(status)
	}
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) (status int) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	if media, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); media != "application/json" {
		return http.StatusUnsupportedMediaType
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge
	}
	var m message
	if err != nil || jsonx.Unmarshal(body, &m) != nil {
		return http.StatusBadRequest
	}
	h, status := r.find(req.Header, body, m.Type == ControlVerification)
	if h == nil {
		return status
	}
	switch m.Type {
	case ControlVerification:
		text, _ := jsonx.Marshal(map[string]string{"challenge": m.Challenge}) // a string always encodes
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
		return http.StatusOK
	case ControlTerminated:
		h.end(fmt.Errorf("%w: %w", ErrTerminated, &m.Error))
	case ControlGap:
		err = r.tell(req.Context(), h, nil)
	case "":
		if m.EventID == "" || m.Name != h.params.Name {
			return http.StatusBadRequest
		}
		err = r.tell(req.Context(), h, &m.Occurrence)
	}
	switch {
	case err == nil:
		return http.StatusNoContent
	case errors.Is(err, ErrRefused):
		return http.StatusGone
	}
	return http.StatusServiceUnavailable
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
		if h.params.Delivery.Secret.signed(header, body) {
			h.id = id
			return h, 0
		}
		status = http.StatusUnauthorized
	}
	return nil, status
}

// tell delivers an occurrence, unless it was delivered before, or a gap if it is nil.
func (r *Receiver) tell(ctx context.Context, h *hook, e *Occurrence) error {
	h.turn.Lock()
	defer h.turn.Unlock()
	if e == nil {
		return h.deliver(ctx, nil, ErrGap)
	}
	if slices.Contains(h.seen, e.EventID) {
		return nil
	}
	err := h.deliver(ctx, e, nil)
	if err == nil || errors.Is(err, ErrRefused) {
		h.seen = append(h.seen[max(0, len(h.seen)+1-maxSeen):], e.EventID)
		r.know(h, "", e.Cursor)
	}
	return err
}

// know notes what the server has said of a subscription: its ID, or "", and where it goes on after a
// restart of the server, or nil.
func (r *Receiver) know(h *hook, id string, cursor *string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.id = cmp.Or(id, h.id)
	h.params.Cursor = cmp.Or(cursor, h.params.Cursor)
}

// Subscribe subscribes to what happens, with a secret of its own, and refreshes the subscription until
// ctx ends; then it unsubscribes and returns the cause. The arguments must encode as a JSON object; nil
// means none. It returns earlier if the server refuses the subscription, or, with
// [ErrTerminated], if it ends it.
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
	params := SubscribeParams{Subscription: sub, Position: from, Delivery: Delivery{Webhook, r.url, NewSecret()}}
	h := &hook{params: params, deliver: deliver, end: end}
	r.mu.Lock()
	r.hooks = append(r.hooks, h)
	r.mu.Unlock()
	defer r.remove(h)
	var lapses time.Time // when the subscription does; zero before the server has agreed
	for failures := 0; err == nil; {
		res, failure := r.refresh(ctx, c, h)
		switch {
		case failure == nil:
		case lapses.IsZero() && ctx.Err() == nil:
			return failure
		default:
			err = retry(ctx, c, failures, failure)
			failures++
			continue
		}
		lapsed := !lapses.IsZero() && time.Now().After(lapses)
		if res.Truncated || lapsed && res.Cursor == nil {
			if err := r.tell(ctx, h, nil); err != nil {
				end(err)
			}
		}
		failures, lapses = 0, time.Now().Add(2*maxRefresh)
		if res.RefreshBefore != nil {
			lapses = *res.RefreshBefore
		}
		err = wait(ctx, c, min(max(time.Until(lapses)/2, minRefresh), maxRefresh))
	}
	if ctx.Err() == nil {
		return err
	}
	ending := &UnsubscribeParams{sub, Delivery{Mode: Webhook, URL: r.url}}
	// It lapses anyway.
	_ = c.Request(context.WithoutCancel(ctx), MethodUnsubscribe, ending, nil, client.Timeout(endingPatience))
	return context.Cause(ctx)
}

// refresh subscribes, or says that the subscription is still wanted.
func (r *Receiver) refresh(ctx context.Context, c *client.Client, h *hook) (*SubscribeResult, error) {
	r.mu.Lock()
	params := h.params
	r.mu.Unlock()
	res := &SubscribeResult{}
	if err := c.Request(ctx, MethodSubscribe, &params, res); err != nil {
		return nil, err
	}
	r.know(h, res.ID, res.Cursor)
	return res, nil
}

func (r *Receiver) remove(h *hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hooks = slices.DeleteFunc(r.hooks, func(other *hook) bool { return other == h })
}
