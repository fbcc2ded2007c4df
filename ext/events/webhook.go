package events

import (
	"bytes"
	"cmp"
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
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/publicnet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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
	URL       string         `json:"url"`
	Secrets   []datedSecret  `json:"secrets"`  // the current one first
	Position  uint64         `json:"position"` // of the last occurrence that was accepted or given up
	Active    bool           `json:"active"`   // false: suspended until it is refreshed
	Refreshes int            `json:"refreshes"`
	Missed    bool           `json:"missed,omitempty"` // occurrences were lost since the last refresh
	Stuck     uint64         `json:"stuck,omitempty"`  // the occurrence at which it was suspended
	Ended     *jsonrpc.Error `json:"ended,omitempty"`  // why it is to end

	LastDelivery time.Time `json:"lastDelivery,omitzero"`
	LastError    string    `json:"lastError,omitempty"`
	FailedSince  time.Time `json:"failedSince,omitzero"`
}

// A datedSecret is a secret that signs until a time; zero is no end.
type datedSecret struct {
	Secret Secret    `json:"secret"`
	Until  time.Time `json:"until,omitzero"`
}

// rotate makes a secret the current one.
func (h *webhook) rotate(s Secret) {
	if len(h.Secrets) > 0 && h.Secrets[0].Secret == s {
		return
	}
	for i := range h.Secrets {
		if h.Secrets[i].Until.IsZero() {
			h.Secrets[i].Until = time.Now().Add(overlap)
		}
	}
	h.Secrets = append([]datedSecret{{Secret: s}}, h.signing()...)
}

// signing returns the secrets that sign now, at most three.
func (h *webhook) signing() []datedSecret {
	valid := slices.DeleteFunc(slices.Clone(h.Secrets), func(s datedSecret) bool {
		return !s.Until.IsZero() && !time.Now().Before(s.Until)
	})
	return valid[:min(len(valid), 3)]
}

// status returns how the deliveries went.
func (h *webhook) status() *DeliveryStatus {
	s := &DeliveryStatus{Active: h.Active}
	if !h.LastDelivery.IsZero() {
		s.LastDeliveryAt = &h.LastDelivery
	}
	if h.LastError != "" {
		s.LastError, s.FailedSince = &h.LastError, &h.FailedSince
	}
	return s
}

// subscriptionID returns the ID of a webhook subscription, which is the same after a restart.
func subscriptionID(f *filter, address string) string {
	return "sub_" + f.key(address)[:32]
}

// subscribe answers events/subscribe, which makes or refreshes a subscription. Without a request (see
// check) it only finds the filter.
func (e *engine) subscribe(ctx context.Context, p loose[SubscribeParams]) (any, error) {
	call, params := mcpkit.CallFrom(ctx), p.params
	if out, ok := ctx.Value(filterOut{}).(**filter); ok {
		f, err := e.filterOf(ctx, params.Subscription, Webhook)
		*out = f
		return struct{}{}, err
	}
	began, principal := time.Now(), call.Principal()
	if principal == nil {
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
	id := subscriptionID(f, params.Delivery.URL)
	if _, err := e.find(ctx, id); err != nil {
		if !errors.Is(err, fleet.ErrNotFound) {
			return nil, err
		}
		if err := e.verify(ctx, principal.Key(), host, id, params.Delivery); err != nil {
			return nil, err
		}
	}
	l := e.log(f.name)
	if err := errors.Join(l.sync(ctx), e.feed(ctx, f, feedByPoll)); err != nil {
		return nil, err
	}
	seq, truncated := l.start(params.Position)
	result := &SubscribeResult{ID: id}
	fresh := webhook{URL: params.Delivery.URL, Position: seq}
	w := watch{ID: id, Name: f.name, Arguments: f.arguments, Principal: stored(principal), Hook: &fresh}
	kept, err := e.ensure(ctx, w, func(w *watch) error {
		h := new(*w.Hook)
		result.Truncated, result.Status = truncated, nil
		if w.revision != 0 {
			result.Truncated, result.Status = h.Missed, h.status()
			h.Missed, h.Refreshes = false, h.Refreshes+1
		}
		h.rotate(params.Delivery.Secret)
		h.Active = true
		w.Hook, w.Principal, w.Expires = h, stored(principal), time.Now().Add(e.ttl(params.TTLMs)).UTC().Truncate(time.Millisecond)
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Revoke ends what it finds after it has barred the principal.
	if at, barred := e.barred.Get(principal.Key(), time.Now()); barred && !at.Before(began) {
		return nil, cmp.Or[error](e.end(ctx, id), e.forbidden("the access of the caller was revoked"))
	}
	result.RefreshBefore, result.Cursor = &kept.Expires, cursorOf(kept.Hook.Position)
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
	return max(time.Duration(suggested.Value)*time.Millisecond, shortestTTL)
}

// unsubscribe answers events/unsubscribe. The event may be gone.
func (e *engine) unsubscribe(ctx context.Context, p loose[UnsubscribeParams]) (any, error) {
	call := mcpkit.CallFrom(ctx)
	if call.Principal() == nil {
		return nil, e.forbidden("unsubscribing needs an authenticated caller")
	}
	f := &filter{name: p.params.Name, principal: call.Principal(), arguments: canonical(call.Arguments())}
	id := subscriptionID(f, p.params.Delivery.URL)
	switch _, err := e.watches().Get(ctx, id); {
	case errors.Is(err, fleet.ErrNotFound) && profiles[e.profile].unknownIsMissing:
		return nil, e.profile.errorf(NotFound, map[string]any{"kind": "subscription"}, "there is no such subscription")
	case err != nil && !errors.Is(err, fleet.ErrNotFound):
		return nil, err
	}
	err := e.watches().Delete(ctx, id, 0)
	e.tellWatch(id)
	return struct{}{}, err
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
	status, answer, failure := e.client.post(ctx, d.URL, id, messageID(ControlVerification), body, d.Secret)
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
	return u.Host, nil
}

// post sends one webhook. failure is one of the Fail constants, "" if the receiver accepted it; status is
// 0 if it was not reached.
func (c *webhookClient) post(ctx context.Context, address, id, messageID string, body []byte, secrets ...Secret) (status int, answer []byte, failure string) {
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
	resp, err := c.http.Do(req)
	if err != nil {
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
