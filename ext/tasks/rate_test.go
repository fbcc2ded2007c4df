package tasks_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// survey asks two questions, one after the other.
func survey(ctx context.Context) (string, error) {
	for _, key := range []string{"first", "second"} {
		if _, err := mcpkit.Confirm(ctx, key+"?", mcpkit.Key(key)); err != nil {
			return "", err
		}
	}
	return "thanks", nil
}

func TestRateTagCountsCallsAndNotRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openWith(t, tasks.New(tasks.TTL(10*time.Hour)))
		require.NoError(t, o.srv.Add(mcpkit.NewTool("survey", survey).Rate("40/h").Tag("task", "optional")))
		p := o.modern()
		p.as = ann
		var ids []string
		for range 40 {
			ids = append(ids, p.start("survey", `{}`))
		}
		refused := p.result("tools/call", `{"name":"survey"}`)
		require.Equal(t, "true", member(t, refused, "isError"))
		require.Contains(t, refused, "too many calls; try again in 1m30s", "the call is refused at once, and does not become a task")
		require.Contains(t, refused, `"retryAfterMs":90000`)
		eve := o.modern()
		eve.as = &oauth.Principal{Subject: "eve"}
		eve.start("survey", `{}`)

		for _, id := range ids {
			p.await(id, protocol.TaskInputRequired)
			p.update(id, accept("first", `{"confirm":true}`))
			p.await(id, protocol.TaskInputRequired)
			p.update(id, accept("second", `{"confirm":true}`))
			require.Equal(t, "thanks", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
		}
	})
}

func TestRunsWithAnswersDoNotTakeKeptResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		asks := true
		require.NoError(t, o.srv.Add(mcpkit.NewTool("look", func(ctx context.Context) (string, error) {
			if !asks {
				return "no question", nil
			}
			ok, err := mcpkit.Confirm(ctx, "Look?", mcpkit.Key("look"))
			return fmt.Sprint("looked: ", ok), err
		}).Hints("readonly").Cache("1h,public").Tag("task", "optional")))
		p := o.modern()
		id := p.start("look", `{}`)
		p.await(id, protocol.TaskInputRequired)
		asks = false
		p.await(p.start("look", `{}`), protocol.TaskCompleted)
		asks = true
		p.update(id, accept("look", `{"confirm":true}`))
		require.Equal(t, "looked: true", contentOf(t, p.await(id, protocol.TaskCompleted).Result))
	})
}
