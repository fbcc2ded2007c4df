package events_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOneLineReachesAPollerAStreamAndAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t, nil)
		p := o.as(ann)
		before := member(t, p.result("events/poll", `{"name":"mail_arrived"}`), "cursor")
		end := p.stream(`{"name":"mail_arrived"}`)
		p.result("events/subscribe", `{"name":"mail_arrived","delivery":{"url":"https://x.example/a?b=c","secret":"`+secret+`"}}`)
		p.take()
		o.hooks.take()
		o.emit("1")
		const told = `"eventId":"1","name":"mail_arrived","timestamp":"2000-01-01T00:00:00Z","data":{"id":"1","from":"ann"}`
		require.Contains(t, p.take()[0], `event","params":{`+told)
		require.Contains(t, o.hooks.take()[0], `{`+told)
		require.Equal(t, `[{`+told+`}]`, member(t, p.result("events/poll", `{"name":"mail_arrived","cursor":`+before+`}`), "events"))
		end()
	})
}
