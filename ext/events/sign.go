package events

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// HeaderSubscriptionID is the header field of deliveries with the ID of their subscription.
const HeaderSubscriptionID = "X-MCP-Subscription-Id"

// The bounds of a secret, in bytes.
const (
	minSecretBytes = 24
	maxSecretBytes = 64
)

// A Secret signs the deliveries of a webhook subscription: "whsec_" and the base64 of 24 to 64
// random bytes. The client chooses it; see [NewSecret]. Only string(s) and JSON show it: formatted
// or logged it is "whsec_***".
type Secret string

const secretPrefix = "whsec_"

// NewSecret returns a new secret of 32 random bytes.
func NewSecret() Secret {
	var key [32]byte
	rand.Read(key[:]) // never fails
	return Secret(secretPrefix + base64.StdEncoding.EncodeToString(key[:]))
}

// Format writes "whsec_***" for all verbs.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(secretPrefix + "***")) }

// LogValue returns "whsec_***".
func (s Secret) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(s)) }

var errSecret = fmt.Errorf(`the secret is not %q and the base64 of %d to %d bytes`, secretPrefix, minSecretBytes, maxSecretBytes)

// webhook returns what signs with s and verifies. The base64 may lack its padding.
func (s Secret) webhook() (*standardwebhooks.Webhook, error) {
	text, ok := strings.CutPrefix(string(s), secretPrefix)
	key, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
	if !ok || err != nil || len(key) < minSecretBytes || len(key) > maxSecretBytes {
		return nil, errSecret
	}
	return standardwebhooks.NewWebhookRaw(key)
}

// sign adds to the header fields of a delivery what Standard Webhooks demands: its ID, the time, and
// a signature of the body by each secret, of which there are several while one replaces another.
func sign(header http.Header, id string, at time.Time, body []byte, secrets ...Secret) error {
	var signatures []string
	for _, s := range secrets {
		w, err := s.webhook()
		if err != nil {
			return err
		}
		signature, err := w.Sign(id, at, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// signed reports whether s signed the body of a delivery, less than 5 minutes ago.
func (s Secret) signed(header http.Header, body []byte) bool {
	w, err := s.webhook()
	return err == nil && w.Verify(body, header) == nil
}
