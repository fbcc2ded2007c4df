package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	subscriber     = "subscriber" // the only client that is authenticated
	publicAddress  = "9.9.9.9"    // of this machine in the network that network.sh makes
	eventsPatience = 2 * time.Minute

	// Of what is rung while webhooks are refused for a minute, and their deliverers are killed, the log
	// of an event keeps all.
	ringPause = 30 * time.Millisecond
)

// A Ring is what the event bell_rang tells.
type Ring struct {
	Number int `json:"number"`
}

// EventID is the same however often the bell is rung with a number.
func (r Ring) EventID() string { return fmt.Sprintf("ring-%d", r.Number) }

// A listener rings the bell, and hears it by webhook and over a stream. Its webhooks must arrive once
// and in order, although their deliverers are killed and it refuses them for some time.
type listener struct {
	client *client.Client
	report *report
	web    *httptest.Server
	closed atomic.Bool // it refuses webhooks

	ringing, work sync.WaitGroup
	cancel        context.CancelFunc

	mu       sync.Mutex
	rung     int            // the last number of which a replica has said that it was emitted; guarded by mu
	received []int          // by webhook; guarded by mu
	arrived  map[string]int // requests, by ID; guarded by mu
	refused  map[string]int // requests that were refused, by ID; guarded by mu
	streamed map[int]bool   // guarded by mu
}

// certificate returns a certificate for the public address, and the name of a file with it, in which
// the replicas trust.
func certificate() (cert tls.Certificate, file string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(publicAddress)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return cert, "", err
	}
	out, err := os.CreateTemp("", "soak-*.pem")
	if err == nil {
		err = errors.Join(pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: der}), out.Close())
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, out.Name(), err
}

// newListener listens for webhooks.
func newListener(cert tls.Certificate, r *report) (*listener, error) {
	public, err := net.Listen("tcp", publicAddress+":0")
	if err != nil {
		return nil, fmt.Errorf("%w; run make soak, which makes a network with this address", err)
	}
	l := &listener{report: r, arrived: map[string]int{}, refused: map[string]int{}, streamed: map[int]bool{}}
	l.web = &httptest.Server{Listener: public, Config: &http.Server{}, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}
	l.web.StartTLS()
	return l, nil
}

// start subscribes, and rings until stop is closed.
func (l *listener) start(ctx context.Context, url string, stop <-chan struct{}) (err error) {
	if l.client, err = client.Dial(ctx, url+"/mcp", client.Version(protocol.Latest),
		client.Header(headerClient, subscriber), client.Logger(slog.New(slog.DiscardHandler))); err != nil {
		return err
	}
	ctx, l.cancel = context.WithCancel(ctx)
	hooks := events.NewReceiver(l.web.URL)
	l.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests := l.arrived
		if l.closed.Load() {
			requests = l.refused
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			hooks.ServeHTTP(w, r)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		requests[r.Header.Get("webhook-id")]++
	})
	var now events.PollResult // both begin where it ends
	sub := events.Subscription{Name: "bell_rang"}
	if err := l.client.Request(ctx, events.MethodPoll, events.PollParams{Subscription: sub}, &now); err != nil {
		return err
	}
	from := events.Position{Cursor: now.Cursor}
	feed, err := events.Follow(ctx, l.client, events.Push, sub.Name, nil, from)
	if err != nil {
		return err
	}
	// The last ends when stop is closed, the others with end.
	l.work.Go(func() { l.hear(ctx, feed) })
	l.work.Go(func() {
		if err := hooks.Subscribe(ctx, l.client, sub.Name, nil, from, l.deliver); ctx.Err() == nil {
			l.report.fail("the subscription to webhooks ended: %v", err)
		}
	})
	l.ringing.Go(func() { l.ring(ctx, stop) })
	return nil
}

// ring rings with one number after the other, each until a replica says that it has.
func (l *listener) ring(ctx context.Context, stop <-chan struct{}) {
	for number := 1; ctx.Err() == nil; {
		select {
		case <-stop:
			return
		case <-time.After(ringPause):
		}
		_, err := client.Call[string](ctx, l.client, "ring", Ring{number}, client.Timeout(patience))
		if err == nil {
			l.mu.Lock()
			l.rung = number
			l.mu.Unlock()
			number++
		}
	}
}

// hear takes what arrives over the stream.
func (l *listener) hear(ctx context.Context, feed iter.Seq2[*events.Occurrence, error]) {
	for e, err := range feed {
		if err != nil {
			if ctx.Err() == nil {
				l.report.fail("the stream of events: %v", err)
			}
			continue
		}
		l.mu.Lock()
		l.streamed[numberOf(e)] = true
		l.mu.Unlock()
	}
}

// deliver takes what arrives by webhook.
func (l *listener) deliver(_ context.Context, e *events.Occurrence, _ error) error {
	if e == nil {
		l.report.fail("webhooks have a gap")
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received = append(l.received, numberOf(e))
	return nil
}

func numberOf(e *events.Occurrence) int {
	var r Ring
	_ = json.Unmarshal(e.Data, &r) // 0 otherwise
	return r.Number
}

// refuse refuses webhooks for some time, and measures how long it then takes until all that was emitted
// has arrived.
func (l *listener) refuse(ctx context.Context, after, d time.Duration) {
	if sleep(ctx, after) != nil {
		return
	}
	l.closed.Store(true)
	_ = sleep(ctx, d)
	l.closed.Store(false)
	opened := time.Now()
	rung, received := l.progress()
	l.report.Outage, l.report.Backlog = d, rung-received
	for upTo := rung; received < upTo && time.Since(opened) < eventsPatience; _, received = l.progress() {
		_ = sleep(ctx, 10*time.Millisecond)
	}
	l.report.CaughtUp = time.Since(opened)
}

// progress returns how many events were emitted, and how many have arrived by webhook.
func (l *listener) progress() (rung, received int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rung, len(l.received)
}

// complete reports whether all has arrived.
func (l *listener) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.received) >= l.rung && len(l.streamed) >= l.rung
}

// end waits until all has arrived after stop was closed, and reports what has not.
func (l *listener) end(ctx context.Context) {
	l.ringing.Wait()
	for deadline := time.Now().Add(eventsPatience); !l.complete() && time.Now().Before(deadline) && ctx.Err() == nil; {
		_ = sleep(ctx, 100*time.Millisecond)
	}
	l.cancel()
	l.work.Wait()
	_ = l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Rung, l.report.Received, l.report.Held = l.rung, len(l.received), len(l.refused)
	for _, n := range l.arrived {
		l.report.Again += n - 1
	}
	for _, n := range l.refused {
		l.report.Refused += n
	}
	for i := range l.rung {
		number := i + 1
		if !l.streamed[number] {
			l.report.fail("event %d did not arrive over the stream", number)
		}
		if len(l.received) < number || l.received[i] != number {
			l.report.fail("event %d did not arrive by webhook in its turn", number)
			return
		}
	}
	if len(l.received) != l.rung {
		l.report.fail("%d webhooks arrived twice, with different IDs", len(l.received)-l.rung)
	}
}
