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

// accept makes the user fill in the next form.
func (h *handlers) accept(content string) {
	h.answers <- &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}
}

// questions checks the questions that tools, prompts and resources ask.
func (s *scenario) questions() {
	if s.since(protocol.V20250618) { // the first version with elicitation
		s.forms()
	}
	if s.since(protocol.V20251125) {
		s.urls()
	}
	s.check("sampling", func(ctx context.Context) error {
		if err := s.returns(ctx, "sample", nil, "echo of a word"); err != nil {
			return err
		}
		p := <-s.handlers.prompts
		return same([]any{p.MaxTokens, p.SystemPrompt, p.Messages[0].Role}, []any{100, "Be short.", "user"})
	})
	s.check("roots", func(ctx context.Context) error { return s.returns(ctx, "list_roots", nil, "home at file:///home") })
	if !s.modern() {
		s.check("changed roots", func(ctx context.Context) error {
			if err := s.c.Notify(ctx, protocol.NotificationRootsListChanged, nil); err != nil {
				return err
			}
			return s.returns(ctx, "roots_changed", nil, "roots changed")
		})
	}
}

func (s *scenario) forms() {
	s.check("elicitation: accepted", func(ctx context.Context) error {
		s.handlers.accept(`{"name":"Ann"}`)
		if err := s.returns(ctx, "ask", nil, "Hello, Ann in blue!"); err != nil { // the client fills in the default
			return err
		}
		asked := <-s.handlers.asked
		var schema struct{ Required []string }
		if err := json.Unmarshal(asked.RequestedSchema, &schema); err != nil {
			return err
		}
		return same([]any{asked.Message, schema.Required}, []any{"Who are you?", []string{"name"}})
	})
	s.check("elicitation: declined, cancelled", func(ctx context.Context) error {
		s.handlers.answers <- &protocol.ElicitResult{Action: protocol.ElicitDecline}
		s.handlers.answers <- &protocol.ElicitResult{Action: protocol.ElicitCancel}
		return errors.Join(s.returns(ctx, "ask", nil, "decline"), s.returns(ctx, "ask", nil, "cancel"))
	})
	s.check("elicitation: two questions in a row", func(ctx context.Context) error {
		s.handlers.accept(`{"name":"Ann"}`)
		s.handlers.accept(`{"colour":"green"}`)
		return s.returns(ctx, "register", nil, "Ann likes green")
	})
	s.check("three questions at once", func(ctx context.Context) error {
		s.handlers.accept(`{"name":"Ann"}`)
		return s.returns(ctx, "ask_several", nil, "Ann, echo of a word, home at file:///home")
	})
	s.check("a prompt that asks", func(ctx context.Context) error {
		s.handlers.accept(`{"name":"Ann"}`)
		result, err := s.c.GetPrompt(ctx, "welcome", nil)
		if err != nil {
			return err
		}
		return same(result.Messages[0].Content, &protocol.TextContent{Text: "Welcome, Ann"})
	})
	s.check("a resource that asks", func(ctx context.Context) error {
		s.handlers.accept(`{"code":"1234"}`)
		return s.reads(ctx, "test://safe", "opened by 1234")
	})
	s.check("cancelling a call cancels its question", func(ctx context.Context) error {
		for len(s.handlers.asked) > 0 {
			<-s.handlers.asked
		}
		s.handlers.answers <- nil
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- s.returns(one, "ask", nil, "") }() // ends with the call
		select {
		case <-s.handlers.asked:
		case err := <-ended:
			return fmt.Errorf("the call ended with %w", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call ended with %w", err)
		}
		return s.handlers.expect(ctx, "question cancelled")
	})
}

func (s *scenario) urls() {
	s.check("elicitation: a URL", func(ctx context.Context) error {
		if err := s.returns(ctx, "pay", nil, "accept"); err != nil {
			return err
		}
		return same(<-s.handlers.pages, "https://pay.example.com/bill?n=1")
	})
	if s.modern() { // modern versions have no such error
		return
	}
	s.check("elicitation: a URL required by an error", func(ctx context.Context) error {
		if err := s.returns(ctx, "pay_first", nil, "paid"); err != nil {
			return err
		}
		return errors.Join(same(<-s.handlers.pages, "https://pay.example.com/bill?n=1"), s.handlers.expect(ctx, "complete bill-1"))
	})
}

// changes checks that changes reach the handlers and the subscriptions.
func (s *scenario) changes() {
	lists := []string{"tools", "prompts", "resources"}
	s.check("list_changed reaches the handlers", func(ctx context.Context) error {
		for _, list := range lists {
			if _, err := s.c.CallTool(ctx, "change", object{"list": list}); err != nil {
				return err
			}
			if err := s.handlers.expect(ctx, list); err != nil {
				return err
			}
		}
		return s.returns(ctx, "extra1", nil, "here")
	})
	name := "list_changed reaches a subscription"
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
		return errors.Join(sub.Close(), s.returns(ctx, "extra4", nil, "here"))
	})
	s.check("an updated resource", func(ctx context.Context) error {
		sub, err := s.c.Subscribe(ctx, "test://guestbook")
		if err != nil {
			return err
		}
		if err := same(sub.Filter().ResourceSubscriptions, []string{"test://guestbook"}); err != nil {
			return err
		}
		if err := s.returns(ctx, "update_resource", nil, "touched"); err != nil {
			return err
		}
		change, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		if err := same(change, client.Change{Kind: client.ResourceUpdated, URI: "test://guestbook"}); err != nil {
			return err
		}
		if err := sub.Close(); err != nil {
			return err
		}
		if _, err := sub.Next(ctx); !errors.Is(err, transport.ErrClosed) {
			return fmt.Errorf("a closed subscription ends with %v", err)
		}
		return s.reads(ctx, "test://guestbook", "Ann was here.")
	})
}

// lifetimes checks the end of calls, streams and sessions.
func (s *scenario) lifetimes() {
	s.check("cancellation ends the call", func(ctx context.Context) error {
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		_, err := s.c.CallTool(one, "wait", nil, client.OnProgress(func(*protocol.ProgressParams) { cancel() }))
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call ended with %w", err)
		}
		return s.returns(ctx, "cancelled", nil, "cancelled")
	})
	if s.http() && s.Version == protocol.V20251125 {
		s.check("a closed stream is resumed", func(ctx context.Context) error {
			_, before := s.recorder.state()
			if err := s.returns(ctx, "resume", nil, "still here"); err != nil {
				return err
			}
			if _, after := s.recorder.state(); after == before {
				return errors.New("no stream was resumed")
			}
			return nil
		})
	}
	if s.http() && !s.modern() {
		s.check("an expired session is replaced", func(ctx context.Context) error {
			before, _ := s.recorder.state()
			if err := s.recorder.endSession(ctx, s.Server.URL); err != nil {
				return err
			}
			if err := s.returns(ctx, "add", sum{1, 2}, `{"sum":3}`); err != nil {
				return err
			}
			if after, _ := s.recorder.state(); after == before {
				return errors.New("there is no new session")
			}
			return nil
		})
	}
}
