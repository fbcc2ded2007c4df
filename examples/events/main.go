// Command events serves an inbox that tells clients of messages: of those that arrive, and of those
// that nobody has read for a while.
//
//	go run ./examples/events -http localhost:8080
//	go run ./cmd/mcpkit events http://localhost:8080/mcp message_received from=ann
//	go run ./cmd/mcpkit call http://localhost:8080/mcp send from=ann text=Hello
//
// Without -http it serves standard input and output. Clients poll, or keep a stream open. Webhooks
// need callers who are authenticated, since a subscription belongs to its principal.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// docs:begin service

// Inbox keeps messages.
type Inbox struct {
	_ mcpkit.Info `name:"inbox" version:"1.0.0"`
	_ struct {
		Send          mcpkit.Tool `hints:"additive,closed-world" params:"from,text"`
		Read          mcpkit.Tool `hints:"readonly,closed-world"`
		MessageUnread mcpkit.Event
	}

	mu       sync.Mutex
	messages []Message // guarded by mu
	read     int       // how many of them were read; guarded by mu
}

// A Message is a message in the inbox.
type Message struct {
	ID   string    `json:"id"`
	From string    `json:"from"`
	Text string    `json:"text"`
	Sent time.Time `json:"sent"`
}

// EventID makes all that is told of a message the same occurrence.
func (m Message) EventID() string { return m.ID }

// EventTime is when the message was sent.
func (m Message) EventTime() time.Time { return m.Sent }

// docs:end service
// docs:begin emit

// A Filter says of which messages a client wants to know.
type Filter struct {
	From string `json:"from,omitempty" desc:"the sender; any if it is left out"`
}

// received tells of each message that arrives.
var received = events.NewType("message_received", "A message has arrived in the inbox.",
	func(_ context.Context, m Message, f Filter) bool { return f.From == "" || f.From == m.From })

// Send sends a message to the inbox.
func (i *Inbox) Send(ctx context.Context, from, text string) (string, error) {
	i.mu.Lock()
	m := Message{fmt.Sprintf("message-%d", len(i.messages)+1), from, text, time.Now()}
	i.messages = append(i.messages, m)
	i.mu.Unlock()
	return m.ID, received.Emit(ctx, m)
}

// docs:end emit

// Read returns the messages that were not read yet.
func (i *Inbox) Read() []Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	unread := i.messages[i.read:]
	i.read = len(i.messages)
	return unread
}

// docs:begin watch

// Patience says for how long a message may stay unread.
type Patience struct {
	Seconds int `json:"seconds" default:"60" validate:"min=1,max=3600"`
}

// MessageUnread tells of a message that nobody has read for some time. It runs as long as somebody
// wants to know.
func (i *Inbox) MessageUnread(ctx context.Context, p Patience) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for _, m := range i.unread(time.Duration(p.Seconds) * time.Second) {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// docs:end watch

// unread returns the messages that are older than the time and were not read yet.
func (i *Inbox) unread(older time.Duration) (all []Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, m := range i.messages[i.read:] {
		if time.Since(m.Sent) > older {
			all = append(all, m)
		}
	}
	return all
}

func main() {
	addr := flag.String("http", "", "address to serve HTTP on, instead of stdio")
	flag.Parse()
	opts := []mcpkit.Option{events.New(received)}
	if *addr != "" {
		opts = append(opts, mcpkit.Over(streamable.Listen(*addr, nil)))
	}
	if err := mcpkit.Serve(&Inbox{}, opts...); err != nil {
		log.Fatal(err)
	}
}
