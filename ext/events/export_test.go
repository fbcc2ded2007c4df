package events

import (
	"crypto/tls"
	"net/http"
	"net/netip"
)

type clientOption func(*webhookClient)

func (f clientOption) configure(o *options) { f(o.client) }

// Network makes webhooks go to addresses that check permits, with connections that config secures.
func Network(check func(netip.Addr) error, config *tls.Config) Option {
	return clientOption(func(c *webhookClient) {
		*c = *newWebhookClient(check)
		c.http.Transport.(*http.Transport).TLSClientConfig = config
	})
}

// Receivers makes webhooks go through t, without a network.
func Receivers(t http.RoundTripper) Option {
	return clientOption(func(c *webhookClient) { c.http.Transport = t })
}
