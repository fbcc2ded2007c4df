package events

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// vectorSecret is that of the test vector of Standard Webhooks.
const vectorSecret Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secretOf(bytes int, e *base64.Encoding) Secret {
	return Secret(secretPrefix + e.EncodeToString([]byte(strings.Repeat("\xfb", bytes))))
}

func TestSecretsHave24To64Bytes(t *testing.T) {
	require.NotEqual(t, NewSecret(), NewSecret())
	for secret, ok := range map[Secret]bool{
		NewSecret():                         true,
		vectorSecret:                        true,
		secretOf(23, base64.StdEncoding):    false,
		secretOf(25, base64.StdEncoding):    true,
		secretOf(64, base64.StdEncoding):    true,
		secretOf(64, base64.RawStdEncoding): true,
		secretOf(32, base64.RawURLEncoding): false,
		secretOf(65, base64.StdEncoding):    false,
		vectorSecret[len(secretPrefix):]:    false,
		"":                                  false,
	} {
		if _, err := secret.webhook(); ok {
			require.NoError(t, err, string(secret))
		} else {
			require.EqualError(t, err, `the secret is not "whsec_" and the base64 of 24 to 64 bytes`, string(secret))
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.Equal(t, "whsec_***", fmt.Sprintf(verb, vectorSecret), verb)
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("kept", "secret", vectorSecret)
	require.Contains(t, out.String(), `"secret":"whsec_***"`)
	text, err := json.Marshal(vectorSecret)
	require.NoError(t, err)
	require.Equal(t, `"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`, string(text))
}

func TestDeliveriesAreSigned(t *testing.T) {
	body, header := []byte(`{"test": 2432232314}`), http.Header{}
	require.NoError(t, sign(header, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), body, vectorSecret))
	require.Equal(t, http.Header{
		"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}, header)
	require.Error(t, sign(header, "id", time.Now(), body, vectorSecret, "whsec_short"))
}

func TestSignaturesAreVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := []byte(`{"eventId":"e1"}`)
		old, fresh := NewSecret(), NewSecret()
		signed := func(secrets ...Secret) http.Header {
			header := http.Header{}
			require.NoError(t, sign(header, "e1", time.Now(), body, secrets...))
			return header
		}
		both := signed(fresh, old)
		require.True(t, old.signed(both, body), "while the secret is replaced")
		require.True(t, fresh.signed(both, body), "while the secret is replaced")
		require.False(t, fresh.signed(signed(old), body))
		require.False(t, fresh.signed(both, append(body, ' ')))
		require.False(t, fresh.signed(http.Header{}, body))
		for _, field := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
			other := both.Clone()
			other.Set(field, "1"+other.Get(field))
			require.False(t, fresh.signed(other, body), field)
		}
		require.False(t, Secret("").signed(both, body))
		time.Sleep(5 * time.Minute)
		require.True(t, fresh.signed(both, body))
		time.Sleep(time.Second)
		require.False(t, fresh.signed(both, body))
	})
}
