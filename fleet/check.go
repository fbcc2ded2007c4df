package fleet

import (
	"cmp"
	"fmt"
	"strings"
)

const nameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// CheckNames returns [ErrInvalid] if one of the names is not allowed. Names of sets, keys, groups,
// logs and topics have 1 to 64 characters of A-Z, a-z, 0-9, "_" and "-".
func CheckNames(names ...string) error {
	for _, name := range names {
		if name == "" || len(name) > maxName || strings.Trim(name, nameCharacters) != "" {
			return fmt.Errorf("%w: the name %.70q", ErrInvalid, name)
		}
	}
	return nil
}

// checkOptional is CheckNames for a name that may be "".
func checkOptional(name string) error {
	if name == "" {
		return nil
	}
	return CheckNames(name)
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("%w: the limit %d", ErrInvalid, limit)
	}
	return nil
}

// checkRecord returns ErrInvalid or ErrTooLarge if the record may not be created or updated.
func checkRecord(set string, r Record) error {
	switch {
	case r.TTL < MinTTL:
		return fmt.Errorf("%w: the TTL %s", ErrInvalid, r.TTL)
	case r.Due < 0:
		return fmt.Errorf("%w: due in %s", ErrInvalid, r.Due)
	}
	return cmp.Or(CheckNames(set, r.Key), checkOptional(r.Group), checkData(r.Data))
}

// checkEntry returns ErrInvalid or ErrTooLarge if the entry may not be appended.
func checkEntry(group, log string, e Entry, keep Keep) error {
	switch {
	case e.Seq == 0:
		return fmt.Errorf("%w: the number 0", ErrInvalid)
	case keep.Entries < 1 || keep.Bytes < 0:
		return fmt.Errorf("%w: keep %d entries, %d bytes", ErrInvalid, keep.Entries, keep.Bytes)
	case keep.TTL < MinTTL:
		return fmt.Errorf("%w: the TTL %s", ErrInvalid, keep.TTL)
	}
	return cmp.Or(CheckNames(group, log), checkData(e.Data))
}

// checkMessage returns ErrInvalid or ErrTooLarge if the message may not be published.
func checkMessage(topic string, data []byte) error {
	return cmp.Or(CheckNames(topic), checkData(data))
}

func checkData(data []byte) error {
	if len(data) > MaxData {
		return ErrTooLarge
	}
	return nil
}
