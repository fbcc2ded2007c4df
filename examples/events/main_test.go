package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestMessagesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcptest.New(t, &Inbox{}, events.New(received))
		ofAnn, unread := s.Events("message_received", Filter{"ann"}), s.Events("message_unread", Patience{3})
		s.Call("send", map[string]any{"from": "bob", "text": "Hi"}).Text("message-1")
		s.Call("send", map[string]any{"from": "ann", "text": "Hello"}).OK()
		ofAnn().JSON(`{"id":"message-2","from":"ann","text":"Hello","sent":"2000-01-01T00:00:00Z"}`)
		s.Call("read", nil).TextContains("Hello")
		time.Sleep(time.Second)
		s.Call("send", map[string]any{"from": "bob", "text": "Are you there?"}).OK()
		unread().JSON(`{"id":"message-3","from":"bob","text":"Are you there?","sent":"2000-01-01T00:00:01Z"}`)
	})
}
