package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How replicas are killed while the client calls them.
const (
	fleetKills = 6
	fleetCalls = 40 // at least
	// afterLoss is how long a call may take whose response died with its replica. This client waits
	// for a response that can no longer arrive.
	afterLoss = 10 * time.Second
	toldLimit = 2 * time.Minute // until a subscription is notified of a change when all is quiet
	boardURI  = "board://today"
)

// killed is what the shop says: see examples/fleet/killer.go.
type killed struct{ Left, Missed int }

// named adds the header field with which the proxy counts what the client loses.
type named struct{ name string }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Client", n.name)
	return http.DefaultTransport.RoundTrip(r)
}

// fleet calls the replicas of examples/fleet while they are killed.
func (s *scenario) fleet(base string) {
	f := &fleetScenario{scenario: s, base: base, name: "go-sdk-" + s.Version}
	s.check("connect at "+s.Version, f.connect)
	if s.session == nil {
		return
	}
	s.check(fmt.Sprintf("calls while %d replicas are killed", fleetKills), f.calls)
	s.check("tools/list when all is quiet", f.list)
	s.check("calls when all is quiet", f.quiet)
	s.check("a change of a resource", f.change)
	s.check("close", func(context.Context) error { return s.session.Close() })
}

type fleetScenario struct {
	*scenario
	base, name string
	updated    atomic.Int64
	orders     int
}

func (f *fleetScenario) connect(ctx context.Context) error {
	opts := &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := object{"confirm": true}
			if req.Params.Message == "Which colour?" {
				content = object{"name": "red"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "cold"}}, nil
		},
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { f.updated.Add(1) },
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, opts)
	transport := &mcp.StreamableClientTransport{Endpoint: f.base + "/mcp", HTTPClient: &http.Client{Transport: named{f.name}}}
	session, err := client.Connect(context.WithoutCancel(ctx), transport, &mcp.ClientSessionOptions{ProtocolVersion: f.Version})
	if err != nil {
		return err
	}
	f.session = session
	return errors.Join(same(session.InitializeResult().ProtocolVersion, f.Version), f.session.Subscribe(ctx, &mcp.SubscribeParams{URI: boardURI}))
}

// shop asks what has happened, or lets replicas be killed.
func (f *fleetScenario) shop(ctx context.Context, method, query string) (k killed, err error) {
	req, err := http.NewRequestWithContext(ctx, method, f.base+"/kill?"+query, nil)
	if err != nil {
		return k, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return k, err
	}
	defer resp.Body.Close()
	return k, json.NewDecoder(resp.Body).Decode(&k)
}

// A fleetCall is a call and what it returns; "" for anything.
type fleetCall struct {
	tool      string
	arguments object
	want      string
}

func (f *fleetScenario) next(n int) fleetCall {
	f.orders++
	id := fmt.Sprintf("%s-%d", f.name, f.orders)
	all := []fleetCall{
		{"where", object{}, ""},
		{"order", object{"id": id}, "ordered " + id},
		{"describe", object{"city": "Oslo"}, "cold"},
		{"count", object{}, "5"},
		{"pin", object{"note": id}, "pinned " + id},
	}
	if f.since("2025-06-18") {
		all = append(all, fleetCall{"colour", object{}, "red"})
	}
	return all[n%len(all)]
}

// one makes a call. lost is set if it failed because its response died with its replica.
func (f *fleetScenario) one(ctx context.Context, c fleetCall) (lost bool, err error) {
	before, err := f.shop(ctx, http.MethodGet, "client="+f.name)
	if err != nil {
		return false, err
	}
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() { // ends with the call
		defer close(watched)
		for calling.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			if now, err := f.shop(calling, http.MethodGet, "client="+f.name); err == nil && now.Missed > before.Missed {
				select {
				case <-time.After(afterLoss):
					cancel()
				case <-calling.Done():
				}
				return
			}
		}
	}()
	got, err := f.text(calling, &mcp.CallToolParams{Name: c.tool, Arguments: c.arguments})
	cancel()
	<-watched
	if err == nil && c.want != "" {
		return false, same(got, c.want)
	}
	if err == nil {
		return false, nil
	}
	after, lookErr := f.shop(ctx, http.MethodGet, "client="+f.name)
	if lookErr == nil && after.Missed > before.Missed {
		return true, fmt.Errorf("%s: %w", c.tool, err)
	}
	return false, errors.Join(fmt.Errorf("%s lost no response: %w", c.tool, err), lookErr)
}

// calls makes one call after the other while replicas are killed.
func (f *fleetScenario) calls(ctx context.Context) error {
	state, err := f.shop(ctx, http.MethodPost, fmt.Sprintf("n=%d", fleetKills))
	if err != nil {
		return err
	}
	made, lost := 0, []string{}
	for state.Left > 0 || made < fleetCalls {
		gone, err := f.one(ctx, f.next(made))
		if gone {
			lost = append(lost, err.Error())
		} else if err != nil {
			return fmt.Errorf("call %d, after %d that died with a replica: %w", made, len(lost), err)
		}
		made++
		if state, err = f.shop(ctx, http.MethodGet, ""); err != nil {
			return err
		}
	}
	fmt.Printf("note\t%d calls, %d of them died with their replica: %s\n", made, len(lost), strings.Join(lost, "; "))
	return nil
}

// list checks that the pages of replicas of both versions of the program make one list.
func (f *fleetScenario) list(ctx context.Context) error {
	var names []string
	for tool, err := range f.session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if tool.Name != "hours" { // only the next version of the program has it
			names = append(names, tool.Name)
		}
	}
	return same(names, []string{"colour", "count", "deliver", "describe", "order", "pin", "where"})
}

// quiet checks that the session goes on.
func (f *fleetScenario) quiet(ctx context.Context) error {
	for n := range 6 {
		if _, err := f.one(ctx, f.next(n)); err != nil {
			return err
		}
	}
	return nil
}

// change checks that a subscribed client is notified of changes.
func (f *fleetScenario) change(ctx context.Context) error {
	if f.modern() { // this client does not open the stream of a subscription again when its replica has died
		if err := f.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: boardURI}); err != nil {
			return err
		}
		if err := f.session.Subscribe(ctx, &mcp.SubscribeParams{URI: boardURI}); err != nil {
			return err
		}
	}
	before := f.updated.Load()
	for end := time.Now().Add(toldLimit); f.updated.Load() == before; {
		if time.Now().After(end) {
			return errors.New("the subscription was not told of a change")
		}
		if _, err := f.one(ctx, fleetCall{"pin", object{"note": "last"}, "pinned last"}); err != nil {
			return err
		}
		for range 20 {
			if f.updated.Load() > before {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}
