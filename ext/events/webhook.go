package events

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/publicnet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

const (
	shortestTTL = time.Minute
	longestTTL  = 24 * time.Hour // in a fleet; otherwise defaultTTL, since subscriptions are lost with the process
	defaultTTL  = time.Hour

	overlap = 5 * time.Minute // for how long a replaced secret signs, too
)

// A webhook is a webhook subscription: where occurrences go, and how far they have got.
type webhook struct {
	URL         string    `json:"url"`
	Secret      Secret    `json:"secret"`
	Former      Secret    `json:"former,omitzero"` // signs, too, until FormerUntil
	FormerUntil time.Time `json:"formerUntil,omitzero"`
	Active      bool      `json:"active"` // false: suspended until it is refreshed
	Refreshes   int       `json:"refreshes"`
	Missed      bool      `json:"missed,omitempty"` // occurrences were lost since the last refresh
	Progress    progress  `json:"progress"`
}

// A progress is what only the courier of a subscription changes.
type progress struct {
	Position     uint64    `json:"position"`        // of the last occurrence that was accepted or given up
	Stuck        uint64    `json:"stuck,omitempty"` // the occurrence at which the subscription was suspended
	LastDelivery time.Time `json:"lastDelivery,omitzero"`
	LastError    string    `json:"lastError,omitempty"`
	FailedSince  time.Time `json:"failedSince,omitzero"`
}

// rotate makes a secret the current one.
func (h *webhook) rotate(s Secret) {
	if h.Secret != s {
		h.Former, h.FormerUntil, h.Secret = h.Secret, time.Now().Add(overlap), s
	}
}

// signing returns the secrets that sign now.
func (h *webhook) signing() []Secret {
	if h.Former != "" && time.Now().Before(h.FormerUntil) {
		return []Secret{h.Secret, h.Former}
	}
	return []Secret{h.Secret}
}

// status returns how the deliveries went.
func (h *webhook) status() *DeliveryStatus {
	s, p := &DeliveryStatus{Active: h.Active}, h.Progress
	if !p.LastDelivery.IsZero() {
		s.LastDeliveryAt = &p.LastDelivery
	}
	if p.LastError != "" {
		s.LastError, s.FailedSince = &p.LastError, &p.FailedSince
	}
	return s
}

// subscriptionID returns the ID of a webhook subscription, which is the same after a restart.
func (i *interest) subscriptionID(address string) string { return "sub_" + i.key(address)[:32] }

// subscribe answers events/subscribe, which makes or refreshes a subscription. Without a request (see
// check) it only finds the filter.
func (e *engine) subscribe(ctx context.Context, p loose[SubscribeParams]) (any, error) {
	call, params := mcpkit.CallFrom(ctx), p.params
	if out, ok := ctx.Value(filterOut{}).(**filter); ok {
		f, err := e.filterOf(ctx, params.Subscription, Webhook)
		*out = f
		return struct{}{}, err
	}
	if call.Principal() == nil {
		return nil, e.forbidden("subscribing needs an authenticated caller")
	}
	if mode := params.Delivery.Mode; mode != "" && mode != Webhook {
		data := map[string]any{"feature": "deliveryMode", "value": mode}
		return nil, e.profile.errorf(Unsupported, data, "events/subscribe delivers by webhook, not by %.20q", mode)
	}
	f, err := e.filterOf(ctx, params.Subscription, Webhook)
	if err != nil {
		return nil, err
	}
	host, err := e.client.checkURL(params.Delivery.URL)
	if err != nil {
		return nil, invalid("delivery.url: %v", err)
	}
	if _, err := params.Delivery.Secret.webhook(); err != nil {
		return nil, invalid("delivery.secret: %v", err)
	}
	id := f.subscriptionID(params.Delivery.URL)
	switch known, err := e.find(ctx, id); {
	case err != nil:
		return nil, err
	case known.Expires.IsZero():
		if err := e.verify(ctx, f.owner(), host, id, params.Delivery); err != nil {
			return nil, err
		}
	}
	seq, truncated, err := e.log(f.Name).start(ctx, params.Position)
	if err != nil {
		return nil, err
	}
	result := &SubscribeResult{ID: id}
	w, err := e.ensure(ctx, id, f.interest, func(w *watch) error {
		h := w.Hook
		result.Truncated, result.Status = truncated, nil
		if h != nil {
			result.Truncated, result.Status = h.Missed, h.status()
			h.Missed, h.Refreshes = false, h.Refreshes+1
		} else {
			h = &webhook{URL: params.Delivery.URL, Progress: progress{Position: seq}}
		}
		h.rotate(params.Delivery.Secret)
		h.Active = true
		w.Hook, w.Expires = h, time.Now().Add(e.ttl(params.TTLMs)).UTC().Truncate(time.Millisecond)
		return nil
	})
	if err != nil {
		return nil, err
	}
	result.RefreshBefore, result.Cursor = &w.Expires, cursorOf(w.Hook.Progress.Position)
	return result, nil
}

// ttl returns for how long a subscription is granted.
func (e *engine) ttl(suggested reflectx.Nullable[int64]) time.Duration {
	longest := defaultTTL
	if e.runner.Fleet() != nil {
		longest = longestTTL
	}
	switch {
	case !suggested.Set:
		return defaultTTL
	case suggested.Null || suggested.Value > longest.Milliseconds():
		return longest
	}
	return time.Duration(max(suggested.Value, shortestTTL.Milliseconds())) * time.Millisecond
}

// unsubscribe answers events/unsubscribe. The event may be gone.
func (e *engine) unsubscribe(ctx context.Context, p loose[UnsubscribeParams]) (any, error) {
	call := mcpkit.CallFrom(ctx)
	if call.Principal() == nil {
		return nil, e.forbidden("unsubscribing needs an authenticated caller")
	}
	i := interestOf(call, p.params.Subscription)
	id := i.subscriptionID(p.params.Delivery.URL)
	if profiles[e.profile].unknownIsMissing {
		switch w, err := e.find(ctx, id); {
		case err != nil:
			return nil, err
		case w.Expires.IsZero():
			return nil, e.profile.errorf(NotFound, map[string]any{"kind": "subscription"}, "there is no such subscription")
		}
	}
	return struct{}{}, e.end(ctx, id)
}

// verify asks a receiver whether it wants webhooks, unless it has said so to this replica.
func (e *engine) verify(ctx context.Context, principal, host, id string, d Delivery) error {
	key := fleet.Digest(principal + "\n" + d.URL)
	if _, ok := e.verified.Get(key, time.Now()); ok {
		return nil
	}
	if e.attempts.Take(fleet.Digest(principal+"\n"+host), time.Now()) > 0 {
		return e.exhausted("verification_rate", 0)
	}
	c := Control{Type: ControlVerification, Challenge: rand.Text()}
	body, err := jsonx.Marshal(&c)
	if err != nil {
		return err
	}
	status, answer, failure := e.post(ctx, d.URL, id, messageID(ControlVerification), body, d.Secret)
	var echo Control
	_ = jsonx.Unmarshal(answer, &echo) // otherwise it is no echo
	if status != 0 && (failure != "" || subtle.ConstantTimeCompare([]byte(echo.Challenge), []byte(c.Challenge)) == 0) {
		failure = FailChallenge
	}
	if failure != "" {
		return e.profile.errorf(CallbackEndpoint, map[string]any{"reason": failure}, "the receiver was not verified: %s", failure)
	}
	e.verified.Put(key, struct{}{}, time.Now().Add(longestTTL))
	return nil
}

func messageID(kind string) string { return "msg_" + kind + "_" + strings.ToLower(rand.Text()) }

const (
	postTimeout = 10 * time.Second
	maxAnswer   = 4 << 10 // bytes that are read of what a receiver answers
	perHost     = 16      // connections to one receiver
)

// A webhookClient posts webhooks, to public addresses only: an address is checked when it is dialled.
// It uses no proxy, which would choose the address, and follows no redirects.
type webhookClient struct {
	http  *http.Client
	check func(netip.Addr) error
}

func newWebhookClient(check func(netip.Addr) error) *webhookClient {
	dialer := &net.Dialer{Timeout: postTimeout, Control: publicnet.Control(check)}
	return &webhookClient{check: check, http: &http.Client{
		Timeout:       postTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			MaxConnsPerHost: perHost, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 16 << 10,
		},
	}}
}

// checkURL returns the host of a URL to which webhooks may go.
func (c *webhookClient) checkURL(raw string) (host string, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("it is not an absolute https URL")
	case u.User != nil || u.Fragment != "":
		return "", errors.New("it has a user or a fragment")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && c.check(ip) != nil {
		return "", errors.New("its address is not public")
	}
	return strings.ToLower(u.Hostname()), nil
}

// post sends one webhook. failure is one of the Fail constants, "" if the receiver accepted it; status is
// 0 if it was not reached.
func (e *engine) post(ctx context.Context, address, id, messageID string, body []byte, secrets ...Secret) (status int, answer []byte, failure string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, FailRefused // it was checked before
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "mcpkit-events")
	req.Header.Set(HeaderSubscriptionID, id)
	if err := sign(req.Header, messageID, time.Now(), body, secrets...); err != nil {
		return 0, nil, FailRefused // they were checked before
	}
	resp, err := e.client.http.Do(req)
	if err != nil {
		if why, ok := errors.AsType[*url.Error](err); ok { // whose own text has the whole URL
			e.runner.Logger().DebugContext(ctx, "events: a receiver is not reached", "host", req.URL.Host, "error", why.Err)
		}
		return 0, nil, failureOf(err)
	}
	defer resp.Body.Close()
	answer, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 == 2:
	case resp.StatusCode < 500:
		failure = Fail4xx
	default:
		failure = Fail5xx
	}
	return resp.StatusCode, answer, failure
}

// failureOf says why a receiver was not reached.
func failureOf(err error) string {
	var wrong *tls.CertificateVerificationError
	var broken tls.RecordHeaderError
	var alert tls.AlertError
	var slow net.Error
	switch {
	case errors.As(err, &wrong), errors.As(err, &broken), errors.As(err, &alert):
		return FailTLS
	case errors.As(err, &slow) && slow.Timeout():
		return FailTimeout
	}
	return FailRefused
}
