package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// accept has the user fill in the next form.
func (g *guest) accept(content string) {
	g.answers <- &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}
}

// questions are those of tools, prompts and resources.
func (s *story) questions() {
	if s.since(protocol.V20250618) { // which brought elicitation
		s.forms()
	}
	if s.since(protocol.V20251125) {
		s.urls()
	}
	s.check("sampling", func(ctx context.Context) error {
		if err := s.says(ctx, "think", nil, "echo of a word"); err != nil {
			return err
		}
		p := <-s.guest.prompts
		return same([]any{p.MaxTokens, p.SystemPrompt, p.Messages[0].Role}, []any{100, "Be short.", "user"})
	})
	s.check("roots", func(ctx context.Context) error { return s.says(ctx, "look", nil, "home at file:///home") })
	if !s.modern() {
		s.check("changed roots", func(ctx context.Context) error {
			if err := s.c.Notify(ctx, protocol.NotificationRootsListChanged, nil); err != nil {
				return err
			}
			return s.says(ctx, "moved", nil, "moved")
		})
	}
}

func (s *story) forms() {
	s.check("elicitation: accepted", func(ctx context.Context) error {
		s.guest.accept(`{"name":"Ann"}`)
		if err := s.says(ctx, "ask", nil, "Hello, Ann in blue!"); err != nil { // the default is filled in
			return err
		}
		asked := <-s.guest.asked
		var schema struct{ Required []string }
		if err := json.Unmarshal(asked.RequestedSchema, &schema); err != nil {
			return err
		}
		return same([]any{asked.Message, schema.Required}, []any{"Who are you?", []string{"name"}})
	})
	s.check("elicitation: declined, cancelled", func(ctx context.Context) error {
		s.guest.answers <- &protocol.ElicitResult{Action: protocol.ElicitDecline}
		s.guest.answers <- &protocol.ElicitResult{Action: protocol.ElicitCancel}
		return errors.Join(s.says(ctx, "ask", nil, "decline"), s.says(ctx, "ask", nil, "cancel"))
	})
	s.check("elicitation: one question after the other", func(ctx context.Context) error {
		s.guest.accept(`{"name":"Ann"}`)
		s.guest.accept(`{"colour":"green"}`)
		return s.says(ctx, "register", nil, "Ann likes green")
	})
	s.check("three questions at once", func(ctx context.Context) error {
		s.guest.accept(`{"name":"Ann"}`)
		return s.says(ctx, "many", nil, "Ann, echo of a word, home at file:///home")
	})
	s.check("a prompt that asks", func(ctx context.Context) error {
		s.guest.accept(`{"name":"Ann"}`)
		result, err := s.c.GetPrompt(ctx, "welcome", nil)
		if err != nil {
			return err
		}
		return same(result.Messages[0].Content, &protocol.TextContent{Text: "Welcome, Ann"})
	})
	s.check("a resource that asks", func(ctx context.Context) error {
		s.guest.accept(`{"code":"1234"}`)
		return s.reads(ctx, "inn://safe", "opened by 1234")
	})
	s.check("cancellation takes back the question", func(ctx context.Context) error {
		for len(s.guest.asked) > 0 {
			<-s.guest.asked
		}
		s.guest.answers <- nil
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- s.says(one, "ask", nil, "") }() // ends with the call
		select {
		case <-s.guest.asked:
		case err := <-ended:
			return fmt.Errorf("the call ended with %w", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call ended with %w", err)
		}
		return s.guest.hear(ctx, "question taken back")
	})
}

func (s *story) urls() {
	s.check("elicitation: a URL", func(ctx context.Context) error {
		if err := s.says(ctx, "pay", nil, "accept"); err != nil {
			return err
		}
		return same(<-s.guest.pages, "https://pay.example.com/bill?n=1")
	})
	if s.modern() { // which has no such error
		return
	}
	s.check("elicitation: a URL that an error asks for", func(ctx context.Context) error {
		if err := s.says(ctx, "pay_first", nil, "paid"); err != nil {
			return err
		}
		return errors.Join(same(<-s.guest.pages, "https://pay.example.com/bill?n=1"), s.guest.hear(ctx, "complete bill-1"))
	})
}

// changes reach the handlers and the subscriptions.
func (s *story) changes() {
	lists := []string{"tools", "prompts", "resources"}
	s.check("list_changed tells the handlers", func(ctx context.Context) error {
		for _, list := range lists {
			if _, err := s.c.CallTool(ctx, "change", object{"list": list}); err != nil {
				return err
			}
			if err := s.guest.hear(ctx, list); err != nil {
				return err
			}
		}
		return s.says(ctx, "extra1", nil, "here")
	})
	name := "list_changed tells a subscription"
	if s.modern() {
		name = "subscriptions/listen"
	}
	s.check(name, func(ctx context.Context) error {
		sub, err := s.c.Listen(ctx, protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
		if err != nil {
			return err
		}
		for i, list := range lists {
			if _, err := s.c.CallTool(ctx, "change", object{"list": list}); err != nil {
				return err
			}
			change, err := sub.Next(ctx)
			if err != nil {
				return err
			}
			if err := same(change.Kind, client.ChangeKind(i+1)); err != nil {
				return err
			}
		}
		return errors.Join(sub.Close(), s.says(ctx, "extra4", nil, "here"))
	})
	s.check("an updated resource", func(ctx context.Context) error {
		sub, err := s.c.Subscribe(ctx, "inn://guestbook")
		if err != nil {
			return err
		}
		if err := same(sub.Filter().ResourceSubscriptions, []string{"inn://guestbook"}); err != nil {
			return err
		}
		if err := s.says(ctx, "touch", nil, "touched"); err != nil {
			return err
		}
		change, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		if err := same(change, client.Change{Kind: client.ResourceUpdated, URI: "inn://guestbook"}); err != nil {
			return err
		}
		if err := sub.Close(); err != nil {
			return err
		}
		if _, err := sub.Next(ctx); !errors.Is(err, transport.ErrClosed) {
			return fmt.Errorf("a closed subscription ends with %v", err)
		}
		return s.reads(ctx, "inn://guestbook", "Ann was here.")
	})
}

// endings are those of calls, streams and sessions.
func (s *story) endings() {
	s.check("cancellation ends the call", func(ctx context.Context) error {
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := s.c.CallTool(one, "wait", nil, client.OnProgress(func(*protocol.ProgressParams) { cancel() }))
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call ended with %w", err)
		}
		return s.says(ctx, "cancelled", nil, "cancelled")
	})
	if s.http() && s.Version == protocol.V20251125 {
		s.check("a stream that ends and is picked up again", func(ctx context.Context) error {
			_, before := s.road.state()
			if err := s.says(ctx, "resume", nil, "still here"); err != nil {
				return err
			}
			if _, after := s.road.state(); after == before {
				return errors.New("nothing was picked up")
			}
			return nil
		})
	}
	if s.http() && !s.modern() {
		s.check("a session that is gone", func(ctx context.Context) error {
			before, _ := s.road.state()
			if err := s.road.forget(ctx, s.Inn.URL); err != nil {
				return err
			}
			if err := s.says(ctx, "add", sum{1, 2}, `{"sum":3}`); err != nil {
				return err
			}
			if after, _ := s.road.state(); after == before {
				return errors.New("there is no new session")
			}
			return nil
		})
	}
}
