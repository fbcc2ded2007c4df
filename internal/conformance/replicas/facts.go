package replicas

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A fact is one promise and its test.
type fact struct {
	name string
	test func(x *trial)
}

var facts = []fact{
	{"sessions go on at any replica", sessionsGoOn},
	{"sessions of others are not found", sessionsAreOfTheirPrincipal},
	{"deleted sessions end at all replicas", deletedSessionsEnd},
	{"records of sessions are limited", recordsAreLimited},
	{"replicas with other keys share nothing", otherKeysShareNothing},
	{"answers find the replica that asked", answersFindTheReplica},
	{"questions find the replica where the client resumes", questionsFindTheClient},
	{"cancellations find the replica that runs the call", cancellationsFindTheReplica},
	{"streams are resumed at another replica", streamsAreResumed},
	{"a dead replica's calls are answered before the client resumes", func(x *trial) { deadReplicasAnswer(x, false) }},
	{"a dead replica's calls are answered while the client reads", func(x *trial) { deadReplicasAnswer(x, true) }},
	{"events of other sessions are not readable", eventsAreOfTheirSession},
	{"changes reach the replica that the client listens to", changesReachTheListener},
	{"resources of remote servers are watched where the client listens", remoteResourcesAreWatched},
	{"clients that listen elsewhere are told that all may have changed", listenersMiss},
	{"updates that need scopes reach their sessions", scopedUpdatesReach},
	{"modern listeners hear of changes at other replicas", modernListenersHear},
	{"log levels move with the session", logLevelsMove},
}

func sessionsGoOn(x *trial) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		all := x.replicas(3)
		c := all[0].open(version)
		for range 2 {
			for _, r := range all {
				c.at(r).works()
			}
		}
		all[0].stop()
		c.at(all[1]).works()
		c.at(all[2]).works()
	}
}

func sessionsAreOfTheirPrincipal(x *trial) {
	all := x.replicas(2)
	c := all[0].open("2025-11-25", "X-User", "ann")
	there := c.at(all[1])
	for _, other := range []string{"bob", ""} {
		require.Equal(x, http.StatusNotFound, there.with("X-User", other).call(1, "where").StatusCode)
	}
	there.works()
	require.Equal(x, http.StatusNotFound, there.with("X-User", "bob").call(1, "where").StatusCode, "also where there is a copy")
}

func deletedSessionsEnd(x *trial) {
	all := x.replicas(3)
	c := all[0].open("2025-11-25")
	c.at(all[1]).works()
	stream := c.at(all[1]).listen("")
	require.Equal(x, http.StatusNoContent, c.at(all[2]).send(http.MethodDelete, "").StatusCode)
	stream.ends()
	all = append(all, x.start("new", keys[0])) // which heard nothing
	for _, r := range all {
		x.until(func() bool { return c.at(r).call(1, "where").StatusCode == http.StatusNotFound })
	}
}

func recordsAreLimited(x *trial) {
	all := x.replicas(2)
	for i := range maxSessions + 1 {
		c := all[i%2].open("2025-11-25")
		text := read(x, c.request(1, "logging/setLevel", `{"level":"error"}`))
		require.Equal(x, i < maxSessions, strings.Contains(text, `"result"`), text)
	}
}

// otherKeysShareNothing starts a replica that can neither read the sessions of the other nor tell it
// anything.
func otherKeysShareNothing(x *trial) {
	one, two := x.start("one", keys[0]), x.start("two", keys[1])
	c := one.open("2025-11-25")
	require.Equal(x, http.StatusNotFound, c.at(two).call(1, "where").StatusCode)
	c.works()
}

// answersFindTheReplica answers at another replica than the one that asked, after a stranger has
// tried to.
func answersFindTheReplica(x *trial) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		all := x.replicas(3)
		c, stranger := all[0].open(version), all[0].open(version)
		stream := x.stream(c.at(all[1]).call(7, "ask"))
		question := stream.has("elicitation/create")
		stranger.at(all[1]).accepted(answer(question, "blue"))
		stranger.at(all[2]).accepted(answer(question, "blue"))
		c.at(all[2]).accepted(answer(question, "red"))
		stream.has("r1: red")
		c.accepted(answer(question, "blue")) // too late
	}
}

// answer returns the answer to a question.
func answer(question sse.Event, colour string) string {
	_, id, _ := strings.Cut(string(question.Data), `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"choice":%q}}}`, id, colour)
}

// questionsFindTheClient asks when the client is to poll, at any replica.
func questionsFindTheClient(x *trial) {
	all := x.replicas(3)
	c := all[0].open("2025-11-25")
	stream := x.stream(c.call(7, "ask_later"))
	priming := stream.next()
	var err error
	for err == nil { // until the server ends it
		_, err = stream.r.Next()
	}
	resumed := c.at(all[1]).resume(priming.ID)
	c.at(all[2]).accepted(answer(resumed.has("elicitation/create"), "red"))
	resumed.has("r0: red")
	resumed.ends()
}

// cancellationsFindTheReplica cancels a call at another replica. A stranger cannot.
func cancellationsFindTheReplica(x *trial) {
	all := x.replicas(2)
	c, stranger := all[0].open("2025-11-25"), all[0].open("2025-11-25")
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`
	kept := x.stream(c.call(7, "work"))
	c.call(8, "work")
	receive(x, all[0].started)
	receive(x, all[0].started)
	stranger.accepted(fmt.Sprintf(cancel, 7))
	stranger.at(all[1]).accepted(fmt.Sprintf(cancel, 7))
	c.at(all[1]).accepted(fmt.Sprintf(cancel, 8))
	receive(x, all[0].stopped)
	close(all[0].finish)
	kept.has("begun")
	kept.has(`"message":"done"`)
	kept.has(`"text":"r0"`)
}

// streamsAreResumed breaks the connection of a call and resumes its stream at other replicas, while
// the call runs and when it is over.
func streamsAreResumed(x *trial) {
	all := x.replicas(3)
	c := all[0].open("2025-11-25")
	stream := x.stream(c.call(7, "work"))
	priming := stream.next()
	stream.has("begun")
	receive(x, all[0].started)
	require.NoError(x, stream.body.Close())

	first := c.at(all[2]).resume(priming.ID)
	first.has("begun")
	resumed := c.at(all[1]).resume(priming.ID)
	resumed.has("begun")
	first.ends() // the client reads on elsewhere
	close(all[0].finish)
	done := resumed.has(`"message":"done"`)
	resumed.has(`"text":"r0"`)
	resumed.ends()

	again := c.at(all[2]).resume(done.ID)
	again.has(`"text":"r0"`)
	again.ends()
}

// deadReplicasAnswer ends the replica that runs a call. A client that resumes the stream elsewhere
// gets an error instead of waiting for ever.
func deadReplicasAnswer(x *trial, reading bool) {
	all := x.replicas(2)
	c := all[0].open("2025-11-25")
	begun := x.stream(c.call(7, "work")).has("begun")
	receive(x, all[0].started)
	die := func() { require.NoError(x, all[0].srv.Fleet().Close()) } // no sign of life any more
	if !reading {
		die()
	}
	since := time.Now()
	resumed := c.at(all[1]).resume(begun.ID)
	if reading {
		die()
	}
	text := string(resumed.has(`"id":7,"error"`).Data)
	require.Contains(x, text, "the process that ran the request has ended")
	resumed.ends()
	if !reading {
		require.Less(x, time.Since(since), 3*time.Second, "at once: the replica that tells the client may end, too")
	}
	close(all[0].finish)
}

// eventsAreOfTheirSession names a stream of another session.
func eventsAreOfTheirSession(x *trial) {
	all := x.replicas(2)
	c, other := all[0].open("2025-11-25"), all[0].open("2025-11-25")
	stream := x.stream(c.call(7, "work"))
	priming := stream.next()
	close(all[0].finish)
	stream.has("begun")

	nothing := make(chan error, 1)
	foreign := other.at(all[1]).resume(priming.ID)
	// Ends with the body.
	go func() { _, err := foreign.r.Next(); nothing <- err }()
	select {
	case err := <-nothing:
		require.Fail(x, "something is sent, or the stream ends", "%v", err)
	case <-time.After(time.Second):
	}
	require.NoError(x, foreign.body.Close())
	require.Error(x, receive(x, nothing))
	for _, bad := range []string{"1-0", "../x-1", strings.Repeat("a", 21) + "-1", "r-", "-"} {
		require.Equal(x, http.StatusBadRequest, c.at(all[1]).with("Last-Event-ID", bad).send(http.MethodGet, "").StatusCode, bad)
	}
}

func changesReachTheListener(x *trial) {
	all := x.replicas(3)
	const today, book, updated = "notes://today", "shelf://book", "resources/updated"
	c := all[0].open("2025-11-25")
	for _, r := range all {
		c.at(r).works() // each knows the session, but only one notifies the client
	}
	first := c.listen("")
	stream := c.at(all[2]).listen("")
	first.ends() // the second stream replaces it
	c.at(all[1]).subscribes("resources/subscribe", today)
	c.at(all[1]).subscribes("resources/subscribe", book)
	x.until(func() bool { return all[2].srv.Subscribed(today) && all[2].srv.Subscribed(book) })
	for _, r := range all {
		r.srv.ResourceUpdated(today)
		stream.has(updated)
		r.shelf.ResourceUpdated(book)
		stream.has(updated)
	}
	c.subscribes("resources/unsubscribe", today)
	for _, r := range all {
		x.until(func() bool { return !r.srv.Subscribed(today) })
	}
	all[0].srv.ResourceUpdated(today)
	require.NoError(x, all[0].srv.Add(mcpkit.NewTool("more", func() {})))
	stream.has("tools/list_changed") // no update before it
	require.NoError(x, all[0].shelf.Add(mcpkit.NewPrompt("more", func() string { return "" })))
	stream.has("prompts/list_changed")
}

// remoteResourcesAreWatched subscribes to a resource of a remote server, to which each replica has a
// connection of its own.
func remoteResourcesAreWatched(x *trial) {
	all := x.replicas(3)
	c := all[0].open("2025-11-25")
	stream := c.at(all[2]).listen("")
	c.at(all[1]).subscribes("resources/subscribe", "far://page")
	for _, r := range all[1:] {
		require.Equal(x, "far://page", receive(x, r.watched))
	}
	for _, r := range all[1:] { // the remote server tells both
		r.shelf.ResourceUpdated("far://page")
	}
	stream.has("resources/updated")
	require.NoError(x, all[1].srv.Add(mcpkit.NewTool("more", func() {}))) // all that it has said before is there now
	stream.has("tools/list_changed")
}

// listenersMiss stops the replica that notifies the client.
func listenersMiss(x *trial) {
	all := x.replicas(2)
	c := all[0].open("2025-11-25")
	last := x.stream(c.send(http.MethodGet, "")).next().ID
	c.at(all[1]).subscribes("resources/subscribe", "notes://today")
	all[0].stop()
	all[1].srv.ResourceUpdated("notes://today") // no replica notifies the client
	stream := c.at(all[1]).listen(last)
	stream.has("tools/list_changed")
	stream.has("resources/list_changed")
	stream.has("resources/updated")
}

func scopedUpdatesReach(x *trial) {
	all := x.replicas(2)
	c := all[0].open("2025-11-25", "X-User", "ann")
	c.subscribes("resources/subscribe", "vault://gold")
	stream := c.at(all[1]).listen("") // the first request of the session there
	x.until(func() bool { return all[1].srv.ResourceUpdated("vault://gold") })
	stream.has("resources/updated")
}

func modernListenersHear(x *trial) {
	all := x.replicas(2)
	c := &client{all[0], http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}}
	stream := x.stream(c.request(1, "subscriptions/listen", `{"notifications":{"resourceSubscriptions":["notes://today"],"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
	stream.has("acknowledged")
	all[1].srv.ResourceUpdated("notes://today")
	stream.has("notifications/resources/updated")
	require.NoError(x, all[1].srv.Add(mcpkit.NewTool("more", func() {})))
	stream.has("notifications/tools/list_changed")
}

func logLevelsMove(x *trial) {
	all := x.replicas(3)
	c := all[0].open("2025-11-25")
	told := func(r *replica) bool {
		return strings.Contains(read(x, c.at(r).call(1, "tell")), "notifications/message")
	}
	for i, level := range []string{"error", "debug", "warning"} {
		require.Contains(x, read(x, c.at(all[i]).request(1, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))), `"result"`)
		for _, r := range all {
			x.until(func() bool { return told(r) == (level == "debug") })
		}
	}
}
