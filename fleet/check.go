package fleet

import "fmt"

// CheckNames returns ErrInvalid if one of the names is not allowed. Engines check their arguments
// with the functions that begin with Check.
func CheckNames(names ...string) error {
	for _, name := range names {
		if !validName(name) {
			return fmt.Errorf("%w: the name %.70q", ErrInvalid, name)
		}
	}
	return nil
}

func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckRecord returns ErrInvalid or ErrTooLarge if the record may not be created or updated.
func CheckRecord(set string, r Record) error {
	if err := CheckNames(set, r.Key); err != nil {
		return err
	}
	if r.Group != "" {
		if err := CheckNames(r.Group); err != nil {
			return err
		}
	}
	switch {
	case r.TTL < MinTTL:
		return fmt.Errorf("%w: the TTL %s", ErrInvalid, r.TTL)
	case r.Due < 0:
		return fmt.Errorf("%w: due in %s", ErrInvalid, r.Due)
	}
	return checkData(r.Data)
}

// CheckEntry returns ErrInvalid or ErrTooLarge if the entry may not be appended.
func CheckEntry(group, log string, e Entry, keep Keep) error {
	if err := CheckNames(group, log); err != nil {
		return err
	}
	switch {
	case e.Seq == 0:
		return fmt.Errorf("%w: the number 0", ErrInvalid)
	case keep.Entries < 1 || keep.Bytes < 0:
		return fmt.Errorf("%w: keep %d entries, %d bytes", ErrInvalid, keep.Entries, keep.Bytes)
	case keep.TTL < MinTTL:
		return fmt.Errorf("%w: the TTL %s", ErrInvalid, keep.TTL)
	}
	return checkData(e.Data)
}

// CheckMessage returns ErrInvalid or ErrTooLarge if the message may not be published.
func CheckMessage(topic string, data []byte) error {
	if err := CheckNames(topic); err != nil {
		return err
	}
	return checkData(data)
}

func checkData(data []byte) error {
	if len(data) > MaxData {
		return ErrTooLarge
	}
	return nil
}
