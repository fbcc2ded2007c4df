package protocol

import "slices"

// A Version is a version of the protocol, named by its date. Later versions are greater.
type Version string

// The versions. Those up to 2025-11-25 are legacy: a client first initializes a session. Later ones
// are modern: each request is self-contained and its _meta says what the client supports.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"

	Latest       = V20260728
	LatestLegacy = V20251125
)

// Supported lists the versions that this module supports, newest first. It must not be changed.
var Supported = []Version{V20260728, V20251125, V20250618, V20250326, V20241105}

// SupportedLegacy lists the versions that can be negotiated with initialize, newest first. It must
// not be changed.
var SupportedLegacy = Supported[1:]

// Known reports whether this module supports the version.
func (v Version) Known() bool { return slices.Contains(Supported, v) }

// Modern reports whether v is a version without sessions: 2026-07-28 or any later date. The empty
// version is not modern.
func (v Version) Modern() bool { return v == V20260728 || v > V20260728 && v.isDate() }

// Legacy reports whether v is one of the four versions with sessions.
func (v Version) Legacy() bool { return slices.Contains(SupportedLegacy, v) }

func (v Version) isDate() bool {
	if len(v) != len("2026-07-28") {
		return false
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash != (v[i] == '-') || !dash && (v[i] < '0' || v[i] > '9') {
			return false
		}
	}
	return true
}
