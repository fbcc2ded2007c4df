// Package events tells clients what happens: the extension io.modelcontextprotocol/events (SEP-3415,
// stage beta). A client that polls, one that keeps a stream open and one that has signed webhooks sent
// to it get the same occurrences.
//
// A program says what may happen, and then that it has:
//
//	var arrived = events.NewType("message_received", "A message has arrived.",
//		func(_ context.Context, m Message, f Filter) bool { return f.From == "" || m.From == f.From })
//
//	mcpkit.Serve(&Inbox{}, events.New(arrived))
//
//	err := arrived.Emit(ctx, Message{ID: "7", From: "ann"})
//
// Or a method of a service watches for what a subscription asks for, as long as somebody does:
//
//	type Inbox struct {
//		_ struct {
//			MessageReceived mcpkit.Event `delivery:"poll,push"`
//		}
//	}
//
//	// MessageReceived tells of messages that arrive.
//	func (s *Inbox) MessageReceived(ctx context.Context, f Filter) iter.Seq2[Message, error]
//
// The schemas of what is told and of the arguments of subscriptions come from the types, descriptions
// from comments, and scopes, toolsets, visibility and middleware apply as they do for tools.
//
// # Identity
//
// A payload with a method EventID() string says what it is about, such as the ID of the message: what
// was told already is not told again, whichever replica learns of it. Others get a random ID. A
// payload with a method EventTime() time.Time says when it happened.
package events

import "github.com/mcpkit/mcpkit-go/protocol"

// ID identifies the extension in the capabilities of servers and clients. Clients of today read the
// member "events" of the capabilities of a server, which it has as well.
const ID = "io.modelcontextprotocol/events"

// The methods of the extension, and its notifications.
const (
	MethodList        = "events/list"
	MethodPoll        = "events/poll"
	MethodStream      = protocol.MethodEventsStream
	MethodSubscribe   = "events/subscribe"
	MethodUnsubscribe = "events/unsubscribe"

	NotificationActive      = "notifications/events/active"
	NotificationEvent       = "notifications/events/event"
	NotificationError       = "notifications/events/error"
	NotificationHeartbeat   = "notifications/events/heartbeat"
	NotificationTerminated  = "notifications/events/terminated"
	NotificationListChanged = "notifications/events/list_changed"
)

// The ways in which occurrences reach clients, in the list delivery of a [Descriptor].
const (
	Poll    = "poll"
	Push    = "push"
	Webhook = "webhook"
)
